"""Architectures of transformers: each opened, placed on two lanes and run, outputs compared.

    python -m benchmarks.architectures [--json] [--no-run] [CLASS ...]

Each class gets its default configuration made small (two layers, a width of 32), random weights
and inputs by name, in a process of its own. It is opened by `from_torch`, its program's outputs are
compared with those of the module, HEFT places it on two lanes by estimated times, and a run there
is compared with the unplaced program. A row says how far it came, and why no further.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks._shared.figures import by_name, parser

TEXT = (
    "ArceeForCausalLM", "BioGptForCausalLM", "BloomForCausalLM", "CodeGenForCausalLM",
    "CohereForCausalLM", "Cohere2ForCausalLM", "Exaone4ForCausalLM", "FalconForCausalLM",
    "GPT2LMHeadModel", "GPTBigCodeForCausalLM", "GPTJForCausalLM", "GPTNeoForCausalLM",
    "GPTNeoXForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "GemmaForCausalLM",
    "GlmForCausalLM", "GraniteForCausalLM", "HeliumForCausalLM", "LlamaForCausalLM",
    "MistralForCausalLM", "MptForCausalLM", "NemotronForCausalLM", "OPTForCausalLM",
    "Olmo2ForCausalLM", "OlmoForCausalLM", "PersimmonForCausalLM", "Phi3ForCausalLM",
    "PhiForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "SmolLM3ForCausalLM",
    "StableLmForCausalLM", "Starcoder2ForCausalLM", "XGLMForCausalLM",
)  # fmt: skip
ENCODERS = (
    "AlbertForMaskedLM", "BertForMaskedLM", "CamembertForMaskedLM", "ConvBertForMaskedLM",
    "DebertaV2ForMaskedLM", "DistilBertForMaskedLM", "ElectraForMaskedLM", "EsmForMaskedLM",
    "FNetForMaskedLM", "MPNetForMaskedLM", "MobileBertForMaskedLM", "ModernBertForMaskedLM",
    "NystromformerForMaskedLM", "RoFormerForMaskedLM", "RobertaForMaskedLM",
    "SqueezeBertForMaskedLM", "XLMRobertaForMaskedLM", "XLNetLMHeadModel",
)  # fmt: skip
PAIRS = (
    "BartForConditionalGeneration", "M2M100ForConditionalGeneration",
    "MBartForConditionalGeneration", "MT5ForConditionalGeneration", "MarianMTModel",
    "PegasusForConditionalGeneration", "T5ForConditionalGeneration",
)  # fmt: skip
EXPERTS = (
    "DbrxForCausalLM", "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "GptOssForCausalLM",
    "GraniteMoeForCausalLM", "JambaForCausalLM", "MixtralForCausalLM", "OlmoeForCausalLM",
    "PhimoeForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM",
)  # fmt: skip
STATES = (
    "BambaForCausalLM", "FalconMambaForCausalLM", "Mamba2ForCausalLM", "MambaForCausalLM",
    "RecurrentGemmaForCausalLM", "RwkvForCausalLM", "Zamba2ForCausalLM",
)  # fmt: skip
VISION = (
    "BeitForImageClassification", "ConvNextForImageClassification",
    "ConvNextV2ForImageClassification", "CvtForImageClassification", "DPTForDepthEstimation",
    "DeiTForImageClassification", "Dinov2ForImageClassification",
    "EfficientNetForImageClassification", "HieraForImageClassification",
    "LevitForImageClassification", "MobileNetV2ForImageClassification",
    "MobileViTForImageClassification", "PoolFormerForImageClassification",
    "RegNetForImageClassification", "ResNetForImageClassification",
    "SegformerForImageClassification", "SiglipVisionModel", "SwinForImageClassification",
    "Swinv2ForImageClassification", "TimesformerForVideoClassification",
    "VideoMAEForVideoClassification", "ViTForImageClassification", "YolosForObjectDetection",
)  # fmt: skip
AUDIO = (
    "ASTForAudioClassification", "HubertForCTC", "SEWForCTC", "Speech2TextForConditionalGeneration",
    "UniSpeechForCTC", "Wav2Vec2ForCTC", "WavLMForCTC", "WhisperForConditionalGeneration",
)  # fmt: skip
TOWERS = (
    "AltCLIPModel", "BlipForImageTextRetrieval", "CLIPModel", "CLIPTextModelWithProjection",
    "CLIPVisionModelWithProjection", "ChineseCLIPModel", "GroupViTModel",
    "LayoutLMForMaskedLM", "LlavaForConditionalGeneration", "PaliGemmaForConditionalGeneration",
    "SiglipModel", "ViltModel",
)  # fmt: skip
CLASSES = (*TEXT, *ENCODERS, *PAIRS, *EXPERTS, *STATES, *VISION, *AUDIO, *TOWERS)
LENGTH = 8

# Sizes by the names that configurations give them; the first that fits a key's end is taken.
SMALL: Mapping[str, Any] = {
    "vocab_size": 99, "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32,
    "embedding_size": 32, "word_embed_proj_dim": 32, "hidden_dim": 64, "intermediate_size": 64,
    "ffn_dim": 64, "d_ff": 64, "n_inner": 64, "ffn_hidden_size": 64, "num_hidden_layers": 2,
    "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_decoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
    "projection_dim": 16, "image_size": 32, "patch_size": 8, "moe_intermediate_size": 16,
    "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "shared_expert_intermediate_size": 32, "d_kv": 8, "head_dim": 8, "state_size": 8,
    "attention_hidden_size": 32, "lru_width": 32, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip


_LATENT: Mapping[str, Any] = {
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_head_dim": 16,
    "num_key_value_heads": 4,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
}
# What a configuration needs beside small sizes.
SPECIAL: Mapping[str, Mapping[str, Any]] = {
    "BambaForCausalLM": {
        "mamba_n_heads": 8,
        "mamba_d_head": 8,
        "mamba_d_state": 8,
        "attn_layer_indices": [1],
    },
    "CodeGenForCausalLM": {"rotary_dim": 4},
    "ConvNextForImageClassification": {"image_size": 64, "patch_size": 4},
    "ConvNextV2ForImageClassification": {"image_size": 64, "patch_size": 4},
    "DPTForDepthEstimation": {"num_hidden_layers": 12},
    "DbrxForCausalLM": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "DeepseekV2ForCausalLM": _LATENT,
    "DeepseekV3ForCausalLM": {**_LATENT, "n_group": 2, "topk_group": 1},
    "EfficientNetForImageClassification": {"hidden_dim": 2560},
    "EsmForMaskedLM": {"vocab_size": 99, "mask_token_id": 3, "pad_token_id": 0},
    "GPTJForCausalLM": {"rotary_dim": 4},
    "GPTNeoForCausalLM": {"attention_types": [[["global", "local"], 1]]},
    "LevitForImageClassification": {"image_size": 224, "patch_size": 16},
    "Mamba2ForCausalLM": {"num_heads": 8, "head_dim": 8, "n_groups": 1},
    "NemotronForCausalLM": {"num_key_value_heads": 2, "head_dim": 8},
    "SiglipModel": {"text_config": {"projection_size": 32}},
    "SwinForImageClassification": {"image_size": 224, "patch_size": 4},
    "Swinv2ForImageClassification": {"image_size": 256, "patch_size": 4},
    "XLNetLMHeadModel": {"d_head": 8},
    "Zamba2ForCausalLM": {
        "layers_block_type": ["mamba", "hybrid"],
        "hybrid_layer_ids": [1],
        "num_mem_blocks": 1,
        "mamba_d_state": 8,
        "mamba_headdim": 8,
        "mamba_ngroups": 1,
        "attention_head_dim": 16,
        "attention_hidden_size": 64,
    },
}

# Inputs that a processor of the library gives beside those that are needed, all zero here.
ZEROS = {"PaliGemmaForConditionalGeneration": ("token_type_ids",)}


def small(kind: Any, name: str = "") -> Any:
    """The default configuration of a class, made small; sizes of its parts too."""
    settings = _small(kind().to_dict())
    for part in kind.sub_configs:
        if isinstance(settings.get(part), dict):
            settings[part] = _small(settings[part])
    for key, value in SPECIAL.get(name, {}).items():
        inner = isinstance(value, dict) and isinstance(settings.get(key), dict)
        settings[key] = {**settings[key], **value} if inner else value
    return kind.from_dict(settings)


def _small(settings: Mapping[str, Any]) -> dict[str, Any]:
    left_out = (
        "model_type", "transformers_version", "layer_types", "attention_layers", "out_features",
        "out_indices", "stage_names",
    )  # fmt: skip
    kept = {k: v for k, v in settings.items() if k not in left_out}
    return kept | {k: SMALL[k] for k, v in kept.items() if k in SMALL and isinstance(v, int)}


def built(name: str) -> tuple[Any, dict[str, Any]]:
    """A small network of a class with random weights, and inputs by name."""
    import torch
    import transformers

    from placement.formats.huggingface.inputs import inputs_of

    kind = getattr(transformers, name)
    torch.manual_seed(0)
    config = small(kind.config_class, name)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    module = kind._from_config(config, dtype=torch.float32).eval()
    inputs = inputs_of(module, {"batch": 1, "length": LENGTH}, torch.float32)
    zeros = {key: torch.zeros_like(inputs["input_ids"]) for key in ZEROS.get(name, ())}
    return module, {**inputs, **zeros}


def row(name: str, runs: bool) -> dict[str, Any]:
    """How far a class comes."""
    found = {"class": name, "parameters": "", "ops": "", "opened": "", "run": "", "reason": ""}
    try:
        module, inputs = built(name)
    except Exception as error:  # of the library about its own default configuration
        return found | {"opened": "not built", "reason": _reason(error)}
    found["parameters"] = sum(value.numel() for value in module.parameters())
    try:
        opened(module, inputs, name, runs, found)
    except Exception as error:  # every reason is one for the table
        found["reason"] = _reason(error)
    return found


def opened(
    module: Any, inputs: Mapping[str, Any], name: str, runs: bool, found: dict[str, Any]
) -> None:
    """Notes in `found` how far a network comes."""
    import placement as pl

    found["opened"] = "no"
    model = pl.from_torch(module, inputs, name=name)
    found |= {"opened": "yes", "ops": len(model.graph.ops)}
    difference = _difference(module, inputs, model.executable)
    if difference:
        raise AssertionError(f"The program answers otherwise than the module: {difference}.")
    if not runs:
        return
    machine = pl.machine_for(model, pl.machine("local", lanes=2))
    problem = pl.make_problem(model, machine)
    placed = pl.place(problem, "heft")
    feeds = {key: value.numpy() for key, value in inputs.items()}
    _, measured = pl.run(model, problem, placed.placement, steps=1, warmup=0, inputs=feeds)
    found["run"] = "equal" if measured.outputs_match else "differs"
    if not measured.outputs_match:
        found["reason"] = measured.skipped_outputs_reason or f"{measured.max_abs_diff:g} apart"


def _difference(module: Any, inputs: Mapping[str, Any], program: Any) -> str:
    """Where the outputs of a program are not those of its module; empty where they are."""
    import torch
    from torch import fx
    from torch.utils import _pytree as pytree

    with torch.no_grad():
        told = [x for x in pytree.tree_leaves(module(**inputs)) if isinstance(x, torch.Tensor)]
        given = {**program.state, **dict(zip(program.inputs, inputs.values(), strict=True))}
        values = [given[n.name] for n in program.graph.nodes if n.op == "placeholder"]
        graph = fx.Graph()
        graph.output(graph.graph_copy(program.graph, now := {}))
        names = {node.name: copy for node, copy in now.items()}
        list(graph.nodes)[-1].args = ([names[node] for _, node in program.outputs],)
        made = fx.Interpreter(fx.GraphModule({}, graph)).run(*values)
    if len(made) != len(told):
        return f"{len(made)} outputs instead of {len(told)}"
    for (label, _), here, there in zip(program.outputs, made, told, strict=True):
        if here.shape != there.shape or not torch.allclose(
            here.double(), there.double(), rtol=1e-4, atol=1e-5, equal_nan=True
        ):
            return f"{label} is {(here.double() - there.double()).abs().max():g} apart"
    return ""


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}".replace("|", "/")


def rows_of(names: Sequence[str], no_run: bool) -> Iterator[dict[str, Any]]:
    """A row for each class, from processes that begin anew behind one that ends one."""
    waiting = list(names)
    while waiting:
        command = [sys.executable, "-m", "benchmarks.architectures", "--worker"]
        command += ["--no-run"] if no_run else []
        with subprocess.Popen(
            [*command, *waiting], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                yield json.loads(line)
                waiting.pop(0)
        if child.returncode and waiting:
            crashed = {"class": waiting.pop(0), "opened": "no", "reason": "the process ended"}
            yield {"parameters": "", "ops": "", "run": "", **crashed}


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--no-run", action="store_true", help="open and compare, without lanes")
    asked.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked.add_argument("classes", nargs="*", metavar="CLASS")
    options = asked.parse_args()
    names = options.classes or CLASSES
    if options.worker:
        for name in names:
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                found = row(name, not options.no_run)
            print(json.dumps(found), flush=True)
        return
    rows = []
    for found in rows_of(names, options.no_run):
        rows.append(found)
        print(json.dumps(found), file=sys.stderr, flush=True)
    print(json.dumps(rows) if options.json else by_name(rows))


if __name__ == "__main__":
    main()
