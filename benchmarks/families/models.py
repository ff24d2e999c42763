"""More families of transformers, small and with random weights, as a registry for `models.py`:

    python benchmarks/models.py --registry benchmarks/families --shapes [NAME ...]

REG[name] has `make_model()`, `make_inputs(batch, seq)` and `group`. seq: tokens, or samples of
sound in hundreds; images and time series have one size.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

TOKENS = 256


@dataclass(frozen=True)
class Entry:
    make_model: Callable[[], nn.Module]
    make_inputs: Callable[[int, int], dict[str, torch.Tensor]]
    group: str


REG: dict[str, Entry] = {}


def add(group: str, family: str, inputs: Callable, config: str = "", **settings: Any) -> None:
    """family: the prefix of the classes' names."""

    def make() -> nn.Module:
        library = importlib.import_module("transformers")
        made = getattr(library, f"{config or family}Config")(**settings)
        return getattr(library, f"{family}Model")(made).eval()

    REG[family.lower()] = Entry(make, inputs, group)


def random(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(sum(size)))


def tokens(batch: int, seq: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(batch * 1000 + seq)
    return torch.randint(5, TOKENS, (batch, seq), generator=generator)


def text(batch: int, seq: int) -> dict[str, torch.Tensor]:
    mask = torch.ones(batch, seq, dtype=torch.long)
    mask[0, seq // 2 :] = 0
    return {"input_ids": tokens(batch, seq), "attention_mask": mask}


def pair(batch: int, seq: int) -> dict[str, torch.Tensor]:
    return {**text(batch, seq), "decoder_input_ids": tokens(batch, seq // 2)}


def image(size: int) -> Callable:
    return lambda batch, seq: {"pixel_values": random(batch, 3, size, size)}


def sound(batch: int, seq: int) -> dict[str, torch.Tensor]:
    return {"input_values": random(batch, 100 * seq)}


def series(batch: int, seq: int) -> dict[str, torch.Tensor]:
    return {
        "past_values": random(batch, 23), "past_time_features": random(batch, 23, 1),
        "past_observed_mask": torch.ones(batch, 23), "future_values": random(batch, 8),
        "future_time_features": random(batch, 8, 1),
    }  # fmt: skip


def text_and_image(batch: int, seq: int) -> dict[str, torch.Tensor]:
    return {"input_ids": tokens(batch, 16), "pixel_values": random(batch, 3, 32, 32)}


SMALL = {
    "vocab_size": TOKENS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 130,
}  # fmt: skip

for _family in ("Camembert", "XLMRoberta", "RoFormer", "MPNet", "Ernie", "MegatronBert", "RemBert",
                "ConvBert", "Data2VecText", "IBert", "LayoutLM", "Mra", "Nystromformer", "Yoso",
                "RoCBert", "Splinter", "FNet", "Deberta", "MarkupLM", "Luke",
                "BioGpt"):  # fmt: skip
    add("text", _family, text, **SMALL)
add("text", "SqueezeBert", text, **SMALL, embedding_size=32)
add("text", "MobileBert", text, **SMALL, intra_bottleneck_size=32, embedding_size=32)
add("text", "Esm", text, **SMALL, pad_token_id=1)
add("text", "BigBird", text, **SMALL, attention_type="original_full")
add("text", "Longformer", text, **SMALL, attention_window=8)
add("text", "Canine", text, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, local_transformer_stride=16, max_position_embeddings=128,
    num_hash_buckets=64)  # fmt: skip
add("text", "Funnel", text, vocab_size=TOKENS, block_sizes=[1, 1], num_decoder_layers=1, d_model=32,
    n_head=4, d_head=8, d_inner=64)  # fmt: skip
add("text", "Reformer", text, vocab_size=TOKENS, hidden_size=32, num_attention_heads=4,
    attention_head_size=8, feed_forward_size=64, axial_pos_embds=False, is_decoder=False,
    max_position_embeddings=128, attn_layers=["local", "local"],
    local_attn_chunk_length=8)  # fmt: skip
for _family in ("XLM", "Flaubert"):
    add("text", _family, text, vocab_size=TOKENS, emb_dim=32, n_layers=2, n_heads=4,
        max_position_embeddings=128)  # fmt: skip

DECODER = {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1,
           "eos_token_id": 2}  # fmt: skip
EXPERTS = {
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
}  # fmt: skip
for _family in ("Phi3", "StableLm", "Olmo", "Olmo2", "Cohere", "Starcoder2", "Granite", "Nemotron",
                "Persimmon", "SmolLM3", "Ernie4_5", "Exaone4", "Arcee"):  # fmt: skip
    add("decoder", _family, text, **DECODER)
for _family in ("Gemma", "Helium", "Glm"):
    add("decoder", _family, text, **DECODER, head_dim=8)
add("decoder", "Gemma3Text", text, "Gemma3Text", **DECODER, head_dim=8)
REG["gemma3"] = REG.pop("gemma3text")
for _family in ("Qwen2Moe", "Olmoe", "GraniteMoe"):
    add("decoder", _family, text, **DECODER, **EXPERTS)
add("decoder", "Qwen3Moe", text, **DECODER, **EXPERTS, head_dim=8)
for _family in ("DeepseekV2", "DeepseekV3", "Dots1"):
    add("decoder", _family, text, **{**DECODER, "num_key_value_heads": 4}, n_routed_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=32, n_group=1, topk_group=1,
        first_k_dense_replace=1, q_lora_rank=16, kv_lora_rank=16, qk_nope_head_dim=8,
        qk_rope_head_dim=8, v_head_dim=8, n_shared_experts=1)  # fmt: skip
add("decoder", "Mamba2", text, **DECODER, num_heads=8, head_dim=8, state_size=16, n_groups=1,
    expand=2)  # fmt: skip
add("decoder", "Jamba", text, **{**DECODER, "num_hidden_layers": 4}, use_mamba_kernels=False,
    attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
    num_experts=2, mamba_dt_rank=8)  # fmt: skip
add("decoder", "Bamba", text, **DECODER, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1,
    attn_layer_indices=[1], mamba_expand=2, mamba_d_state=16)  # fmt: skip
add("decoder", "GPTNeo", text, vocab_size=TOKENS, max_position_embeddings=128, hidden_size=32,
    num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
    window_size=8)  # fmt: skip
add("decoder", "Mpt", text, vocab_size=TOKENS, max_seq_len=128, d_model=32, n_layers=2, n_heads=4)
add("decoder", "Rwkv", lambda batch, seq: {"input_ids": tokens(batch, seq)}, vocab_size=TOKENS,
    hidden_size=32, num_hidden_layers=2, attention_hidden_size=32,
    context_length=128)  # fmt: skip
add("decoder", "ImageGPT", text, vocab_size=TOKENS, n_positions=128, n_embd=32, n_layer=2, n_head=4)

add("pair", "LED", pair, vocab_size=TOKENS, d_model=32, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
    max_encoder_position_embeddings=128, max_decoder_position_embeddings=128,
    attention_window=8)  # fmt: skip
for _family in ("LongT5", "SwitchTransformers"):
    add("pair", _family, pair, vocab_size=TOKENS, d_model=32, d_kv=8, d_ff=64, num_layers=2,
        num_heads=4, num_experts=2, decoder_start_token_id=0)  # fmt: skip
add("pair", "ProphetNet", pair, vocab_size=TOKENS, hidden_size=32, encoder_ffn_dim=64,
    decoder_ffn_dim=64, num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4,
    num_decoder_attention_heads=4, max_position_embeddings=128)  # fmt: skip

VISION = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
for _family in ("DeiT", "Beit", "ViTMAE", "DPT"):
    add("vision", _family, image(32), **VISION)
add("vision", "Yolos", image(32), **{**VISION, "image_size": [32, 32]}, num_detection_tokens=4)
add("vision", "Swinv2", image(64), image_size=64, embed_dim=16, depths=[2, 2], num_heads=[2, 4],
    window_size=4, patch_size=4)  # fmt: skip
add("vision", "Pvt", image(64), image_size=64, hidden_sizes=[16, 32, 32, 32], depths=[1] * 4,
    num_attention_heads=[1, 2, 2, 2])  # fmt: skip
add("vision", "PoolFormer", image(64), hidden_sizes=[16, 32, 32, 32], depths=[1] * 4)
add("vision", "Levit", image(64), image_size=64, hidden_sizes=[16, 32, 32], depths=[1] * 3,
    num_attention_heads=[2, 2, 2], key_dim=[8, 8, 8])  # fmt: skip
add("vision", "MobileViT", image(64), image_size=64, hidden_sizes=[16] * 3, num_attention_heads=2,
    neck_hidden_sizes=[8, 8, 8, 8, 16, 16, 16])  # fmt: skip
add("vision", "EfficientNet", image(64), image_size=64, num_block_repeats=[1] * 7)
add("vision", "RegNet", image(64), embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1] * 4,
    groups_width=8)  # fmt: skip
add("vision", "FocalNet", image(64), image_size=64, embed_dim=16, depths=[1] * 4)
add("vision", "Hiera", image(64), embed_dim=8, depths=[1] * 4, num_heads=[1, 1, 2, 2],
    image_size=[64, 64], initial_hidden_size=8, patch_kernel=[7, 7])  # fmt: skip
add("vision", "GLPN", image(64), hidden_sizes=[8, 16, 16, 16], depths=[1] * 4,
    num_attention_heads=[1, 2, 2, 2])  # fmt: skip

SOUND = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "conv_dim": [16] * 3, "conv_stride": [5, 2, 2], "conv_kernel": [10, 3, 2],
    "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}  # fmt: skip
for _family in ("Hubert", "WavLM", "SEW", "Wav2Vec2Conformer"):
    add("sound", _family, sound, **SOUND)
add("sound", "Mimi", lambda batch, seq: {"input_values": random(batch, 1, seq * 480)},
    num_filters=4, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, head_dim=8,
    num_key_value_heads=4, intermediate_size=32, upsampling_ratios=[8, 4], codebook_dim=16,
    vector_quantization_hidden_dimension=16, codebook_size=32, num_quantizers=2,
    num_semantic_quantizers=1, upsample_groups=32)  # fmt: skip
add("sound", "Dac", lambda batch, seq: {"input_values": random(batch, 1, seq * 64)},
    encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=16, codebook_dim=4,
    upsampling_ratios=[4, 2], codebook_size=16, n_codebooks=2, hidden_size=32)  # fmt: skip
add("sound", "Vits", text, vocab_size=TOKENS, hidden_size=32, num_hidden_layers=1,
    num_attention_heads=2, ffn_dim=32, flow_size=32, spectrogram_bins=33,
    upsample_initial_channel=16, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8],
    resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1, 3]], wavenet_dilation_rate=1,
    depth_separable_channels=2, duration_predictor_filter_channels=32,
    prior_encoder_num_wavenet_layers=1, prior_encoder_num_flows=1,
    posterior_encoder_num_wavenet_layers=1)  # fmt: skip

SERIES = {
    "prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2, 7], "d_model": 16,
    "num_time_features": 1, "encoder_layers": 2, "decoder_layers": 1, "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
}  # fmt: skip
for _family in ("Informer", "TimeSeriesTransformer"):
    add("series", _family, series, **SERIES)
add("series", "Autoformer", series, **SERIES, label_length=4, moving_average=5,
    autocorrelation_factor=2)  # fmt: skip
add("series", "PatchTSMixer", lambda batch, seq: {"past_values": random(batch, 32, 3)},
    context_length=32, patch_length=8, num_input_channels=3, d_model=16, num_layers=2)  # fmt: skip
add("series", "DecisionTransformer", lambda batch, seq: {
    "states": random(batch, seq, 17), "actions": random(batch, seq, 4),
    "rewards": random(batch, seq, 1), "returns_to_go": random(batch, seq, 1),
    "timesteps": torch.arange(seq).expand(batch, seq), "attention_mask": torch.ones(batch, seq),
}, hidden_size=32, n_layer=2, n_head=4)  # fmt: skip

add("several", "Perceiver", lambda batch, seq: {"inputs": random(batch, seq, 64)}, d_model=64,
    d_latents=32, num_latents=8, num_blocks=1, num_self_attends_per_block=2,
    num_self_attention_heads=4, num_cross_attention_heads=4)  # fmt: skip
add("several", "Lxmert", lambda batch, seq: {
    **text(batch, seq), "visual_feats": random(batch, 4, 16), "visual_pos": random(batch, 4, 4),
}, vocab_size=TOKENS, hidden_size=32, num_attention_heads=4, intermediate_size=64, l_layers=1,
    x_layers=1, r_layers=1, visual_feat_dim=16)  # fmt: skip
add("several", "Siglip", text_and_image, vision_config=VISION, text_config={
    **SMALL, "max_position_embeddings": 64, "projection_size": 32,
})  # fmt: skip
