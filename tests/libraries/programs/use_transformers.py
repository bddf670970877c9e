"""GPT-2, BERT, Llama, T5, ViT: losses, gradients, greedy generation, files; a Trainer on the CPU."""

import tempfile

import torch
from common import fill, numbers, report
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessorList,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
tokens = torch.tensor([[5, 9, 3, 7, 11, 4], [8, 6, 12, 10, 3, 5]])
found = {}


def step(name, model, **inputs):
    """The loss of a model, and how large its gradients are."""
    model = fill(model).train()
    output = model(**inputs)
    output.loss.backward()
    found[f"{name}_loss"] = output.loss.item()
    found[f"{name}_logits"] = output.logits.detach().flatten()[:6].tolist()
    found[f"{name}_slopes"] = [
        p.grad.abs().sum().item() for _, p in sorted(model.named_parameters()) if p.grad is not None
    ][:8]
    return model.eval()


dropped = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
gpt2 = step(
    "gpt2",
    GPT2LMHeadModel(GPT2Config(vocab_size=40, n_positions=32, n_embd=16, n_layer=2, n_head=2, **dropped, **ENDS)),
    input_ids=tokens,
    labels=tokens,
)
llama = step(
    "llama",
    LlamaForCausalLM(LlamaConfig(vocab_size=40, max_position_embeddings=32, num_key_value_heads=1, **SMALL, **ENDS)),
    input_ids=tokens,
    labels=tokens,
)
for name, model in (("gpt2", gpt2), ("llama", llama)):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    found[f"{name}_tokens"] = model.generate(tokens, max_new_tokens=12, do_sample=False)
    found[f"{name}_without_cache"] = model.generate(tokens, max_new_tokens=12, do_sample=False, use_cache=False)
    found[f"{name}_beams"] = model.generate(tokens, max_new_tokens=6, num_beams=3, do_sample=False)
    sampled = model.generate(tokens, max_new_tokens=4, do_sample=True, top_k=5, top_p=0.9, temperature=0.7)
    found[f"{name}_sampled"] = list(sampled.shape)[:1]

mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
bert = step(
    "bert",
    BertForSequenceClassification(
        BertConfig(
            vocab_size=40,
            max_position_embeddings=32,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            num_labels=3,
            **SMALL,
        )
    ),
    input_ids=tokens,
    attention_mask=mask,
    labels=torch.tensor([0, 2]),
)
t5 = step(
    "t5",
    T5ForConditionalGeneration(
        T5Config(
            vocab_size=40,
            d_model=16,
            d_kv=8,
            d_ff=32,
            num_layers=2,
            num_heads=2,
            dropout_rate=0.0,
            decoder_start_token_id=0,
            **ENDS,
        )
    ),
    input_ids=tokens,
    labels=tokens,
)
found["t5_tokens"] = t5.generate(tokens, max_new_tokens=8, do_sample=False)
vit = step(
    "vit",
    ViTForImageClassification(
        ViTConfig(
            image_size=16,
            patch_size=4,
            num_labels=3,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            **SMALL,
        )
    ),
    pixel_values=numbers(2, 3, 16, 16),
    labels=torch.tensor([0, 2]),
)


class Sentences(Dataset):
    """The tokens as examples."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {"input_ids": (tokens[i % 2] + i) % 40, "labels": (tokens[i % 2] + i) % 40}


with tempfile.TemporaryDirectory() as folder:
    llama.save_pretrained(folder)
    again = LlamaForCausalLM.from_pretrained(folder)
    found["files"] = torch.equal(again.generate(tokens, max_new_tokens=6, do_sample=False),
                                 llama.generate(tokens, max_new_tokens=6, do_sample=False))  # fmt: skip
    options = TrainingArguments(
        folder, max_steps=6, per_device_train_batch_size=4, learning_rate=0.01, logging_steps=1, save_steps=3,
        report_to=[], use_cpu=True, data_seed=0, seed=0, disable_tqdm=True, max_grad_norm=1.0, warmup_steps=2,
        train_sampling_strategy="sequential",
    )  # fmt: skip
    trainer = Trainer(again, options, train_dataset=Sentences(), eval_dataset=Sentences())
    trainer.train()
    found["trained"] = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    found["evaluated"] = trainer.evaluate()["eval_loss"]
    resumed = Trainer(LlamaForCausalLM.from_pretrained(folder), options, train_dataset=Sentences())
    resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-3")
    found["resumed"] = [entry["loss"] for entry in resumed.state.log_history if "loss" in entry]

report(**found, processors=len(LogitsProcessorList()))
