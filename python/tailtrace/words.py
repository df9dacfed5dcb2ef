"""Words for people."""


def counted(count: int, name: str, more: str = "") -> str:
    """As in "1 item", "2 items", "2 or more items"."""
    return f"{count}{more} {name}{'' if count == 1 else 's'}"
