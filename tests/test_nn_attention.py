"""The choice of how attention is computed."""

import pytest

import corefw as torch
from corefw.nn.attention import (
    SDPBackend,
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
    sdpa_kernel,
)
from corefw.nn.functional import scaled_dot_product_attention
from tests.parity import import_torch

X = torch.linspace(-1, 1, 48).reshape(2, 4, 6)
#: what computes attention if it is asked for: whether the op `attention` runs
WAYS = [
    (SDPBackend.MATH, False),
    (SDPBackend.FLASH_ATTENTION, True),
    (SDPBackend.EFFICIENT_ATTENTION, True),
    ([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], True),
    ([SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH], False),
]


@pytest.mark.parametrize(("chosen", "one_kernel"), WAYS)
def test_the_chosen_way_computes_and_the_result_is_the_same(chosen, one_kernel):
    expected = scaled_dot_product_attention(X, X, X, is_causal=True)
    with sdpa_kernel(chosen), torch.ledger() as book:
        found = scaled_dot_product_attention(X, X, X, is_causal=True)
    torch.testing.assert_close(found, expected)
    assert ("attention" in {name for name, *_ in book.counts}) == one_kernel


@pytest.mark.parametrize("chosen", [SDPBackend.CUDNN_ATTENTION, SDPBackend.ERROR, [SDPBackend.OVERRIDEABLE], []])
def test_a_way_that_is_not_there_is_refused(chosen):
    with sdpa_kernel(chosen), pytest.raises(RuntimeError, match=r"No available kernel.*allow SDPBackend\.FLASH"):
        scaled_dot_product_attention(X, X, X)


def test_one_kernel_drops_nothing_out():
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError, match=r"dropout_p is 0\.5"):
        scaled_dot_product_attention(X, X, X, dropout_p=0.5)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        assert scaled_dot_product_attention(X, X, X, dropout_p=0.5).shape == X.shape


def test_choices_end_with_their_block_also_after_an_error():
    with pytest.raises(ZeroDivisionError), sdpa_kernel(SDPBackend.MATH), sdpa_kernel(SDPBackend.ERROR):
        raise ZeroDivisionError
    assert scaled_dot_product_attention(X, X, X).shape == X.shape


@sdpa_kernel(SDPBackend.CUDNN_ATTENTION)
def refused():
    return scaled_dot_product_attention(X, X, X)


def test_as_a_decorator():
    for _ in range(2):
        with pytest.raises(RuntimeError, match="No available kernel"):
            refused()


@pytest.mark.parametrize("chosen", ["MATH", None, [0], 0])
def test_what_is_no_way_is_refused(chosen):
    with pytest.raises(AssertionError, match="must be an instance of SDPBackend"), sdpa_kernel(chosen):
        pass


def test_ways_have_pytorchs_names_and_numbers():
    theirs = import_torch().nn.attention.SDPBackend.__members__
    assert {name: int(way) for name, way in theirs.items()} == {way.name: way.value for way in SDPBackend}


def test_there_is_nothing_to_activate():
    assert list_flash_attention_impls() == [] and current_flash_attention_impl() is None
    with pytest.raises(ValueError, match="Unknown flash attention impl 'FA4'"):
        activate_flash_attention_impl("FA4")
    with pytest.raises(RuntimeError, match="register one for the op 'attention'"):
        register_flash_attention_impl("mine", register_fn=print)
    restore_flash_attention_impl()


def test_the_switch_for_warnings_is_there():
    assert torch.nn.attention.WARN_FOR_UNFUSED_KERNELS is False
