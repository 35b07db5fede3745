"""A reduced Llama generates live on two lanes: tokens beside those of transformers, and times.

    python -m benchmarks.language.generation [--json] [--placers heft,...] [--tokens N]

Four layers of width 512 with random weights take in a prompt and add tokens one by one, the
likeliest each time. Both steps are placed on two one-core lanes of this computer, by estimated
times; `generate` of transformers has both cores. A row says whether all tokens are the same, and
measured beside predicted times. Decode is predicted with a full cache.
"""

import statistics
import time
from typing import Any

from benchmarks._shared.figures import parser, parts, show

WIDTH, DEPTH, PROMPT, BATCH = 512, 4, 64, 1
COLUMNS = {
    "placer": "{placer}",
    "tokens equal": "{equal} of {tokens}",
    "lanes used": "{lanes}",
    "first token": "{first_ms:.1f} ms",
    "predicted": "{predicted_first_ms:.1f} ms",
    "tokens/s": "{tokens_per_s:.0f}",
    "predicted tokens/s": "{predicted_tokens_per_s:.0f}",
    "transformers tokens/s": "{reference_tokens_per_s:.0f}",
}


def reduced_llama() -> Any:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_attention_heads=8,
        num_key_value_heads=4,
        num_hidden_layers=DEPTH,
        vocab_size=4096,
        max_position_embeddings=512,
    )
    return transformers.LlamaForCausalLM(config).eval()


def reference(network: Any, prompts: Any, number: int) -> tuple[Any, float]:
    """The tokens that transformers adds, and how many a second, prefill included."""
    import numpy as np
    import torch

    given = torch.as_tensor(np.asarray(prompts))
    begun_s = time.perf_counter()
    with torch.no_grad():
        found = network.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=number,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
    return found[:, given.shape[1] :].numpy(), number / (time.perf_counter() - begun_s)


def row(network: Any, placer: str, prompts: Any, number: int) -> dict[str, Any]:
    import placement as pl

    known, per_s = reference(network, prompts, number)
    made = pl.generate(
        network, prompts, new_tokens=number, machine=pl.machine("two-lanes"), placer=placer
    )
    used = {device for placed in made.placements for device in placed.device_of.values()}
    return {
        "placer": placer,
        "equal": int((made.tokens == known).sum()),
        "tokens": int(known.size),
        "lanes": len(used),
        "first_ms": made.first_token_s * 1e3,
        "predicted_first_ms": (made.prefill.first_token_s or 0.0) * 1e3,
        "tokens_per_s": BATCH / statistics.median(made.step_s),
        "predicted_tokens_per_s": made.decode.tokens_per_s,
        "reference_tokens_per_s": per_s,
    }


def main() -> None:
    import numpy as np

    options = parser(__doc__, placers="heft,round_robin", tokens=32).parse_args()
    prompts = np.random.default_rng(0).integers(0, 4096, (BATCH, PROMPT))
    network = reduced_llama()
    rows = [row(network, name, prompts, options.tokens) for name in parts(options.placers)]
    show(options.json, COLUMNS, rows)


if __name__ == "__main__":
    main()
