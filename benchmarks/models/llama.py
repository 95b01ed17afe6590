"""Calls transformers' Llama of a small configuration, with random weights."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

device = "cuda" if torch.cuda.is_available() else "cpu"
width, batch, length = map(int, sys.argv[1:] or (256, 2, 64))
config = LlamaConfig(
    vocab_size=1024, hidden_size=width, intermediate_size=4 * width, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2,
)  # fmt: skip
net = LlamaForCausalLM(config).eval().to(device)
with torch.no_grad():
    for _ in range(1000):
        tokens = torch.randint(1024, (batch, length), device=device)
        net(input_ids=tokens, attention_mask=torch.ones_like(tokens), use_cache=False)
