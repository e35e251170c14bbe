"""Every client over TLS, with a certificate of its own."""
