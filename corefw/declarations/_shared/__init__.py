"""What several families of declarations share."""
