"""What all bindings of the reference runtime's logs share: files, sessions of JobMasters, vector clocks."""
