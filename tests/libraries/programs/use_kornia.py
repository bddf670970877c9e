"""Colour, filters, geometry, features and losses of images, with gradients."""

import kornia
import torch
from common import numbers, report
from kornia import color, filters, geometry, metrics, morphology

image = numbers(2, 3, 12, 16).abs().clamp(0.01, 0.99)
gray = color.rgb_to_grayscale(image)


def summary(x):
    """Sums that tell one result from another, by position too."""
    x = x.double()
    weights = torch.arange(x.numel(), dtype=torch.float64).reshape(x.shape).remainder(7) + 1
    return [list(x.shape), x.sum().item(), (x * weights).sum().item()]


center = torch.tensor([[8.0, 6.0]]).repeat(2, 1)
turn = geometry.get_rotation_matrix2d(center, torch.tensor([15.0, -30.0]), torch.ones(2, 2))
corners = torch.tensor([[[0.0, 0.0], [15.0, 0.0], [15.0, 11.0], [0.0, 11.0]]]).repeat(2, 1, 1)
moved = corners + numbers(2, 4, 2)
homography = geometry.get_perspective_transform(corners, moved)
vectors = numbers(3, 3, seed=3)
found = {
    "gray": gray,
    "hsv": color.hsv_to_rgb(color.rgb_to_hsv(image)),
    "hls": color.rgb_to_hls(image),
    "lab": color.lab_to_rgb(color.rgb_to_lab(image)),
    "luv": color.rgb_to_luv(image),
    "xyz": color.rgb_to_xyz(image),
    "yuv": color.yuv_to_rgb(color.rgb_to_yuv(image)),
    "ycbcr": color.rgb_to_ycbcr(image),
    "sepia": color.sepia(image),
    "gaussian": filters.gaussian_blur2d(image, (5, 3), (1.5, 0.8)),
    "box": filters.box_blur(image, 3),
    "median": filters.median_blur(image, (3, 3)),
    "sobel": filters.sobel(image),
    "laplacian": filters.laplacian(image, 3),
    "gradients": filters.spatial_gradient(gray),
    "canny": filters.canny(image)[0],
    "bilateral": filters.bilateral_blur(image, (3, 3), 0.1, (1.0, 1.0)),
    "sharpened": filters.unsharp_mask(image, (3, 3), (1.0, 1.0)),
    "motion": filters.motion_blur(image, 5, 35.0, 0.5),
    "dilation": morphology.dilation(image, torch.ones(3, 3)),
    "opening": morphology.opening(image, torch.ones(3, 3)),
    "warped": geometry.warp_affine(image, turn, (12, 16), padding_mode="reflection"),
    "perspective": geometry.warp_perspective(image, homography, (10, 14)),
    "homography": homography,
    "rotated": geometry.rotate(image, torch.tensor([20.0, -10.0])),
    "resized": geometry.resize(image, (8, 9), antialias=True),
    "pyramid": geometry.pyrdown(image),
    "elastic": geometry.elastic_transform2d(image, numbers(2, 2, 12, 16, seed=2)),
    "undistorted": geometry.undistort_points(
        numbers(1, 4, 2), torch.eye(3)[None] + 0.5, torch.tensor([[0.1, 0.01, 0.0, 0.0]])
    ),
    "matrices": geometry.axis_angle_to_rotation_matrix(vectors),
    "quaternions": geometry.rotation_matrix_to_quaternion(geometry.axis_angle_to_rotation_matrix(vectors)),
    "points": geometry.transform_points(homography, corners),
    "harris": kornia.feature.harris_response(gray),
    "sift": kornia.feature.SIFTDescriptor(12)(gray[..., :12]),
    "hough": kornia.feature.match_nn(numbers(5, 8), numbers(6, 8, seed=4))[0],
    "equalized": kornia.enhance.equalize(image),
    "contrast": kornia.enhance.adjust_contrast(image, 1.4),
    "gamma": kornia.enhance.adjust_gamma(image, 0.7),
    "hue": kornia.enhance.adjust_hue(image, 0.3),
    "normalized": kornia.enhance.normalize(image, torch.full((3,), 0.4), torch.full((3,), 0.2)),
    "patches": kornia.contrib.extract_tensor_patches(image, (4, 4), stride=4),
    "distance": kornia.contrib.distance_transform((gray > 0.8).float()),
}
learned = image.clone().requires_grad_()
loss = (
    kornia.losses.ssim_loss(learned, image.flip(-1), 5)
    + kornia.losses.total_variation(learned).mean()
    + filters.gaussian_blur2d(geometry.warp_affine(learned, turn, (12, 16)), (3, 3), (1.0, 1.0)).pow(2).mean()
    + color.rgb_to_lab(learned).mean()
)
loss.backward()
report(
    **{name: summary(value) for name, value in found.items()},
    loss=loss.item(),
    gradient=summary(learned.grad),
    psnr=metrics.psnr(image, image.flip(-1), 1.0).item(),
    focal=kornia.losses.focal_loss(numbers(4, 3), torch.tensor([0, 1, 2, 1]), 0.5, reduction="mean").item(),
    dice=kornia.losses.dice_loss(numbers(2, 3, 4, 4), (numbers(2, 4, 4) > 0).long()).item(),
)
