from specserve.config.leaves import leaves


def test_a_tree_becomes_dotted_keys_in_its_order() -> None:
    tree = {"b": {"d": 1, "c": None}, "a": [{"e": 2}]}

    assert [("b.d", 1), ("b.c", None), ("a", [{"e": 2}])] == list(leaves(tree))


def test_an_empty_section_is_a_value() -> None:
    assert [("a.b", {})] == list(leaves({"a": {"b": {}}}))
