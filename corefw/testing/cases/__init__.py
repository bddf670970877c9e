"""The rows of the conformance kit, a module for each family of ops."""
