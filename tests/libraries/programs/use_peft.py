"""LoRA and other adapters on GPT-2 and Llama: trained, saved, loaded, merged, switched off."""

import tempfile

import torch
from common import fill, numbers, report
from peft import (
    AdaLoraConfig,
    IA3Config,
    LoraConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptTuningConfig,
    TaskType,
    get_peft_model,
    get_peft_model_state_dict,
)
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
tokens = torch.tensor([[5, 9, 3, 7, 11, 4], [8, 6, 12, 10, 3, 5]])
found = {}


def gpt2():
    """A small model with weights of a rule."""
    sizes = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
    return fill(GPT2LMHeadModel(GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **ENDS)))


def llama():
    """Another."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    return fill(LlamaForCausalLM(LlamaConfig(vocab_size=40, max_position_embeddings=32, **sizes, **ENDS)))


def adapted(model, config):
    """A model with an adapter whose weights are of a rule too."""
    model = get_peft_model(model, config)
    with torch.no_grad():
        for seed, (_, parameter) in enumerate(sorted(model.named_parameters())):
            if parameter.requires_grad:
                parameter.copy_(0.2 * numbers(*parameter.shape, seed=seed))
    return model


def train(name, model, steps=4):
    """The losses of some steps, by Adam, of the adapter alone."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, 0.05)
    losses = []
    for _ in range(steps):
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found[f"{name}_losses"] = losses
    found[f"{name}_counts"] = list(model.get_nb_trainable_parameters())


options = {"task_type": TaskType.CAUSAL_LM}
places = {"target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True}
lora = adapted(gpt2(), LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, **places, **options))
train("lora", lora)
logits = lora(tokens).logits
found["lora_tokens"] = lora.eval().generate(input_ids=tokens, max_new_tokens=6, do_sample=False)
with tempfile.TemporaryDirectory() as folder:
    lora.save_pretrained(folder)
    again = PeftModel.from_pretrained(gpt2(), folder).eval()
    found["files"] = torch.allclose(again(tokens).logits, logits)
    found["keys"] = sorted(get_peft_model_state_dict(again))
    again.load_adapter(folder, "second")
    again.set_adapter("second")
    found["switched"] = torch.allclose(again(tokens).logits, logits)
with lora.disable_adapter():
    found["off"] = torch.allclose(lora(tokens).logits, gpt2()(tokens).logits, atol=1e-5)
merged = lora.merge_and_unload()
found["merged"] = torch.allclose(merged(tokens).logits, logits, atol=1e-4)
found["logits"] = logits.detach().flatten()[:8].tolist()

kinds = {
    "dora": LoraConfig(r=2, use_dora=True, target_modules=["q_proj", "v_proj"], **options),
    "rslora": LoraConfig(r=2, use_rslora=True, target_modules="all-linear", modules_to_save=["lm_head"], **options),
    "ia3": IA3Config(target_modules=["k_proj", "v_proj", "down_proj"], feedforward_modules=["down_proj"], **options),
    "adalora": AdaLoraConfig(init_r=4, target_r=2, total_step=10, target_modules=["q_proj"], **options),
    "prompt": PromptTuningConfig(num_virtual_tokens=3, **options),
    "prefix": PrefixTuningConfig(num_virtual_tokens=3, **options),
}
for kind, config in kinds.items():
    train(kind, adapted(llama(), config), 3)
report(**found)
