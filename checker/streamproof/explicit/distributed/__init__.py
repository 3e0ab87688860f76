"""A search whose states are divided over many processes by their hash, in files of a shared folder."""
