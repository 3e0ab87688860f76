"""What people read: the console and HTML pages."""
