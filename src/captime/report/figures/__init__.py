"""Pictures, one file each. All of them need the extra `plot`, and none touches the global state of pyplot."""
