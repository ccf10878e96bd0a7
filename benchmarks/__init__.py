"""The package against its peers, in one run."""
