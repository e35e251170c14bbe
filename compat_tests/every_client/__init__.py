"""What every client must find, asked of each in turn."""
