# SPDX-License-Identifier: Apache-2.0
"""An attention block of vendored kernels under torch.compile, beside PyTorch's own operators."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent / "third_party/acme/adapters/torch"))
import acme_torch

DEPTH = 128


class Block(torch.nn.Module):
    """x + attention(x W) V, causal; x is (batch, rows, width) in bf16."""

    def __init__(self, heads: int = 8) -> None:
        """Make a block of as many heads; its width is 128 times that."""
        super().__init__()
        width = heads * DEPTH
        self.heads = heads
        self.project = torch.nn.Linear(width, 3 * width, bias=False, dtype=torch.bfloat16)
        self.merge = torch.nn.Linear(width, width, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, rows, width); there is no backward pass."""
        projected = self.project(x).unflatten(-1, (3, self.heads, DEPTH))
        query, key, value = projected.unbind(2)  # views: the kernel reads their strides
        out, _ = acme_torch.d128_causal_bf16(query, key, value)
        return acme_torch.gemm_bf16_residual_sm90(out.flatten(-2), self.merge.weight.t(), x)


def reference(block: Block, x: torch.Tensor) -> torch.Tensor:
    """Return the same by PyTorch's own operators."""
    projected = block.project(x).unflatten(-1, (3, block.heads, DEPTH)).transpose(1, 3)
    query, key, value = projected.unbind(2)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return x + block.merge(out.transpose(1, 2).flatten(-2))


@torch.no_grad()
def main() -> None:
    """Compare the two and say how far they are apart."""
    if not torch.cuda.is_available():
        sys.exit("block.py: no GPU to run on")
    torch.manual_seed(0)
    block = Block().cuda()
    x = torch.randn(2, 1500, block.heads * DEPTH, device="cuda").bfloat16()
    expected = reference(block, x).float()
    for mode in ("default", "reduce-overhead"):
        compiled = torch.compile(block, fullgraph=True, mode=mode)
        for _ in range(3):
            got = compiled(x).float()
        error = (got - expected).norm() / expected.norm()
        print(f"{mode}: relative difference {error:.1e}")
        if not error < 0.01:
            sys.exit("block.py: the outputs differ")


if __name__ == "__main__":
    main()
