"""Small U-Nets, autoencoders, DiT and ControlNet: trained, sampled by eight schedulers, checkpointed, saved, loaded."""

import tempfile

import torch
import torch.nn.functional as F
from common import fill, numbers, report
from diffusers import (
    AutoencoderKL,
    ControlNetModel,
    DDIMPipeline,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DiTTransformer2DModel,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    HeunDiscreteScheduler,
    LMSDiscreteScheduler,
    PNDMScheduler,
    UNet2DConditionModel,
    UNet2DModel,
    UniPCMultistepScheduler,
    VQModel,
)
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel

out = {}
unet = fill(
    UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
)
sched = DDPMScheduler(num_train_timesteps=50)
opt = torch.optim.AdamW(unet.parameters(), 0.001)
lr = get_cosine_schedule_with_warmup(opt, 2, 10)
ema = EMAModel(unet.parameters())
losses = []
for i in range(4):
    clean, noise, t = (numbers(2, 3, 16, 16, seed=i), numbers(2, 3, 16, 16, seed=i + 10), torch.tensor([3 * i, 40 - i]))
    noisy = sched.add_noise(clean, noise, t)
    loss = F.mse_loss(unet(noisy, t).sample, noise)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
    opt.step()
    lr.step()
    ema.step(unet.parameters())
    losses.append(loss.item())
out["losses"] = losses
unet.eval()
with torch.no_grad():
    for S in (
        DDIMScheduler,
        DPMSolverMultistepScheduler,
        EulerDiscreteScheduler,
        PNDMScheduler,
        LMSDiscreteScheduler,
        HeunDiscreteScheduler,
        UniPCMultistepScheduler,
        FlowMatchEulerDiscreteScheduler,
    ):
        s = S(num_train_timesteps=50)
        s.set_timesteps(4)
        x = numbers(1, 3, 16, 16) * getattr(s, "init_noise_sigma", 1.0)
        for t in s.timesteps:
            inp = s.scale_model_input(x, t) if hasattr(s, "scale_model_input") else x
            x = s.step(unet(inp, t).sample * 0.1, t, x).prev_sample
        out[S.__name__] = x.flatten()[::37]
vae = fill(
    AutoencoderKL(
        in_channels=3,
        out_channels=3,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        block_out_channels=(8, 16),
        latent_channels=4,
        norm_num_groups=4,
    )
)
img = numbers(1, 3, 16, 16)
post = vae.encode(img).latent_dist
rec = vae.decode(post.mode()).sample
l = F.mse_loss(rec, img) + 0.001 * post.kl().mean()
l.backward()
out["vae"] = l.item()
out["vaeg"] = vae.encoder.conv_in.weight.grad.flatten()[:20]
vae.enable_tiling()
vae.enable_slicing()
out["tile"] = vae(numbers(2, 3, 16, 16)).sample.flatten()[:10]
cond = fill(
    UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=12,
        attention_head_dim=4,
        norm_num_groups=8,
    )
)
y = cond(numbers(1, 4, 8, 8), 7, encoder_hidden_states=numbers(1, 5, 12)).sample
y.pow(2).mean().backward()
out["cond"] = y.flatten()[::17]
out["condg"] = cond.conv_in.weight.grad.flatten()[:10]
cond.enable_gradient_checkpointing()
cond.train()
cond.zero_grad()
y = cond(numbers(1, 4, 8, 8), 7, encoder_hidden_states=numbers(1, 5, 12)).sample
y.pow(2).mean().backward()
out["ckpt"] = cond.conv_in.weight.grad.flatten()[:10]
cn = fill(ControlNetModel.from_unet(cond, conditioning_channels=3))
a, b = cn(
    numbers(1, 4, 8, 8),
    7,
    encoder_hidden_states=numbers(1, 5, 12),
    controlnet_cond=numbers(1, 3, 64, 64),
    return_dict=False,
)
out["cn"] = b.flatten()[:10]
dit = fill(
    DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        sample_size=8,
        patch_size=2,
        num_embeds_ada_norm=10,
    )
)
dit.eval()
y = dit(numbers(1, 4, 8, 8), timestep=torch.tensor([3]), class_labels=torch.tensor([2])).sample
y.sum().backward()
out["dit"] = y.flatten()[::11]
vq = fill(VQModel(block_out_channels=(8,), num_vq_embeddings=16, norm_num_groups=4))
out["vq"] = vq(numbers(1, 3, 16, 16)).sample.flatten()[:10]
with tempfile.TemporaryDirectory() as d:
    unet.save_pretrained(d)
    u = UNet2DModel.from_pretrained(d)
    out["saved"] = u(numbers(1, 3, 16, 16), 5).sample.flatten()[::31]
    p = DDPMPipeline(unet=u, scheduler=sched)
    p.set_progress_bar_config(disable=True)
    p.save_pretrained(d + "/p")
    p = DDIMPipeline.from_pretrained(d + "/p")
    p.set_progress_bar_config(disable=True)
    pics = p(batch_size=1, num_inference_steps=2, generator=torch.Generator().manual_seed(0), output_type="np").images
    out["shape"] = list(pics.shape)
report(**out)
