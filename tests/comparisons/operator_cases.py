"""Further cases for compare_operators.py: norms, resizing, sampling, scattering, quantised convolution, moves of blocks.

A case takes a Draw and gives (inputs, attributes, number of outputs), as there. Left out, because ONNX Runtime departs from
the standard or the standard says nothing: affine
grids of one row with align_corners, the norm of one number, infinities that meet a limit of Clip that is not given.
"""
import numpy as np

FLOATS = [np.float32, np.float64]


def image(d, channels=None, low=1, high=6):
    return d.array([d.upto(1, 2), channels or d.upto(1, 4), d.upto(low, high), d.upto(low, high)], np.float32)


def batch_norm(d):
    x = d.array(d.shape(2, 4, empty=False), np.float32)
    own = [d.array([x.shape[1]], np.float32) for _ in range(4)]
    return [x, *own[:3], np.abs(own[3]) + 0.1], {"epsilon": d.pick(1e-5, 1e-2)}, 1


def instance_norm(d):
    x = d.array(d.shape(3, 4, empty=False), np.float32)
    return [x, *(d.array([x.shape[1]], np.float32) for _ in range(2))], {"epsilon": 1e-3}, 1


def group_norm(d):
    groups, each = d.upto(1, 3), d.upto(1, 3)
    x = image(d, groups * each, 2)
    return [x, *(d.array([groups * each], np.float32) for _ in range(2))], {"num_groups": groups, "epsilon": 1e-3}, 1


def local_norm(d):
    return [image(d, d.upto(1, 7))], {"size": d.pick(1, 3, 5), "alpha": 0.01, "beta": d.pick(0.75, 0.5), "bias": 2.0}, 1


def length_norm(d):
    shape = d.shape(1, 3, empty=False)
    return [d.array(shape, d.one_of(FLOATS))], {"axis": d.axis(len(shape)), "p": d.upto(1, 2)}, 1


def mean_variance(d):
    axes = d.r.sample(range(4), d.upto(1, 4))
    return [d.array([2, d.upto(2, 4), d.upto(2, 6), d.upto(2, 6)], np.float32)], {"axes": axes} if d.flag() else {}, 1


def resize(d):
    x, mode = image(d, low=2), d.pick("nearest", "nearest", "linear", "cubic")
    new = list(x.shape[:2]) + [d.upto(1, 9), d.upto(1, 9)]
    attributes = {"mode": mode, "coordinate_transformation_mode": d.pick("half_pixel", "asymmetric", "pytorch_half_pixel",
                                                                        "half_pixel_symmetric", "align_corners")}
    if mode == "nearest":
        exact = attributes["coordinate_transformation_mode"] == "asymmetric"  # elsewhere whole places hang on roundings
        attributes["nearest_mode"] = d.pick("round_prefer_floor", "round_prefer_ceil", *(("floor", "ceil") if exact else ()))
    else:
        attributes["antialias"] = int(d.r.random() < 0.2)
    if mode == "cubic":
        attributes["cubic_coeff_a"] = d.pick(-0.75, -0.5)
        attributes["exclude_outside"] = d.flag()
    if d.flag() or attributes["coordinate_transformation_mode"] == "align_corners":
        return [x, None, None, np.array(new, np.int64)], attributes, 1
    return [x, None, np.array([1, 1, d.pick(0.5, 2, 1, 3), d.pick(0.5, 2, 1, 3)], np.float32)], attributes, 1


def grid_sample(d):
    x = image(d, low=2)
    grid = (d.n.random([x.shape[0], d.upto(1, 4), d.upto(1, 4), 2]) * 2.6 - 1.3).astype(np.float32)
    return [x, grid], {"mode": d.pick("linear", "nearest", "cubic"), "align_corners": d.flag(),
                       "padding_mode": d.pick("zeros", "reflection", "border")}, 1


def affine_grid(d):
    size = [d.upto(1, 2), 1, d.upto(2, 5), d.upto(2, 5)]
    return [d.array([size[0], 2, 3], np.float32), np.array(size, np.int64)], {"align_corners": d.flag()}, 1


def einsum(d):
    n = {c: d.pick(1, 2, 3, 5) for c in "ijkl"}
    text = d.pick("ij,jk->ik", "ij,jk", "ijk,jkl->il", "ij->ji", "ij,ij->i", "i,j->ij", "ijk->k", "ij,kj->ik", "ijk,ikl->ijl",
                  "ij,i->j", "ij->", "ijk,l->ijkl")
    terms = text.split("->")[0].split(",")
    dtype = d.one_of(FLOATS)
    return [d.array([n[c] for c in t], dtype) for t in terms], {"equation": text}, 1


def scatter_nd(d):
    shape = d.shape(1, 3, empty=False)
    length, reduction = d.upto(1, len(shape)), d.pick("none", "add", "mul", "max", "min")
    count = d.upto(1, 4)
    indices = np.stack([d.n.integers(-n, n, [count]) for n in shape[:length]], -1)
    if reduction == "none":  # no two updates of one place
        indices = indices[:1]
    return [d.array(shape, np.float32), indices, d.array([len(indices)] + shape[length:], np.float32)], \
        {"reduction": reduction}, 1


def one_hot(d):
    dtype, shape = d.pick(np.int64, np.int32, np.float32), d.shape(1, 3)
    indices = d.n.integers(-4, 4, shape).astype(dtype)
    return [indices, np.array(4, np.int64), d.array([2], d.pick(np.float32, np.int64))], {"axis": d.axis(len(shape) + 1)}, 1


def reverse_sequence(d):
    shape = d.shape(2, 4, empty=False)
    time = d.flag()
    lengths = d.n.integers(0, shape[time] + 1, [shape[1 - time]]).astype(np.int64)
    return [d.array(shape, np.float32), lengths], {"time_axis": time, "batch_axis": 1 - time}, 1


def depth_to_space(d):
    return [image(d, 4 * d.upto(1, 3))], {"blocksize": 2, "mode": d.pick("DCR", "CRD")}, 1


def space_to_depth(d):
    return [d.array([1, d.upto(1, 3), 2 * d.upto(1, 3), 2 * d.upto(1, 3)], np.float32)], {"blocksize": 2}, 1


def parts(d):
    shape = d.shape(1, 3, empty=False)
    axis, count = d.axis(len(shape)), d.upto(1, 4)
    return [d.array(shape, np.float32)], {"axis": axis, "num_outputs": count}, count


def range_of(d):
    dtype = d.pick(np.float32, np.int64, np.int32)
    start, limit, delta = (np.array(v, dtype) for v in (d.upto(-5, 5), d.upto(-5, 9), d.pick(1, 2, -1, 3)))
    return [start, limit, delta], {}, 1


def variadic(d):
    shape, dtype = d.shape(), d.one_of(FLOATS)
    return [d.array(d.part(shape), dtype) for _ in range(d.upto(1, 4))], {}, 1


def prelu(d):
    shape = d.shape(1, 4)
    return [d.array(shape, np.float32), d.array(d.part(shape), np.float32)], {}, 1


def clip(d):
    dtype = d.pick(np.float32, np.float64, np.int32, np.int64, np.int8)
    low, high = sorted([d.upto(-9, 9), d.upto(-9, 9)])
    return [d.array(d.shape(), dtype), np.array(low, dtype) if d.flag() else None,
            np.array(high, dtype) if d.flag() else None], {}, 1


def shape_of(d):
    return [d.array(d.shape(), np.float32)], {"start": d.upto(-5, 5), **({"end": d.upto(-5, 5)} if d.flag() else {})}, 1


def squeeze(d):
    shape = [d.pick(1, 1, 2, 3) for _ in range(d.upto(1, 4))]
    axes = [i - (len(shape) if d.flag() else 0) for i, n in enumerate(shape) if n == 1 and d.flag()]
    return [d.array(shape, np.float32)] + ([np.array(axes, np.int64)] if axes else []), {}, 1


def unsqueeze(d):
    shape = d.shape(0, 3)
    rank = len(shape) + d.upto(1, 2)
    axes = d.r.sample(range(rank), rank - len(shape))
    return [d.array(shape, np.float32), np.array([a - (rank if d.flag() else 0) for a in axes], np.int64)], {}, 1


def dynamic_quantize(d):
    return [d.array(d.shape(1, 3, empty=False), np.float32)], {}, 3


def scale_of(d, shape=()):
    return np.asarray(np.abs(d.array(shape, np.float32)) / 9 + 0.02).astype(np.float32)


def q_linear_matmul(d):
    m, n, k, right = d.pick(1, 3, 9), d.pick(1, 5, 16), d.pick(1, 7, 40), d.pick(np.uint8, np.int8)
    own = [n] if d.flag() else []
    return [d.full([m, k], np.uint8), scale_of(d), d.full([], np.uint8), d.full([k, n], right), scale_of(d, own),
            d.full(own, right), np.array(d.pick(1.0, 30.0), np.float32), d.full([], np.uint8)], {}, 1


def q_convolution(integer):
    def case(d):
        group, channels, maps = d.pick(1, 1, 2), d.upto(1, 3), d.upto(1, 3)
        x = d.full([1, group * channels, d.upto(3, 7), d.upto(3, 7)], np.uint8)
        w = d.full([group * maps, channels, d.upto(1, 3), d.upto(1, 3)], np.uint8 if integer else np.int8)
        attributes = {"group": group, "strides": [d.upto(1, 2), 1], "pads": [d.flag() for _ in range(4)]}
        if integer:
            return [x, w, d.full([], np.uint8), d.full([], np.uint8)], attributes, 1
        own = [group * maps] if d.flag() else []
        bias = [d.n.integers(-900, 900, [group * maps]).astype(np.int32)] if d.flag() else []
        return [x, scale_of(d), d.full([], np.uint8), w, scale_of(d, own), np.zeros(own, np.int8),
                np.array(9.0, np.float32), d.full([], np.uint8), *bias], attributes, 1
    return case


def roi_align(d):
    rois = np.stack([np.sort(d.n.random(2) * 8)[[0, 0, 1, 1]] for _ in range(d.upto(1, 3))]).astype(np.float32)
    rois[:, 3] += 1
    return [d.array([2, d.upto(1, 2), 8, 9], np.float32), rois, d.n.integers(0, 2, [len(rois)])], \
        {"output_height": d.upto(1, 3), "output_width": d.upto(1, 3), "sampling_ratio": d.upto(0, 2),
         "mode": d.pick("avg", "max"), "coordinate_transformation_mode": d.pick("half_pixel", "output_half_pixel")}, 1


def suppress(d):
    corners = d.n.random([d.upto(1, 2), d.upto(1, 6), 2, 2]) * 10
    boxes = np.concatenate([corners.min(2), corners.max(2)], -1).astype(np.float32)
    scores = d.n.random([boxes.shape[0], d.upto(1, 2), boxes.shape[1]]).astype(np.float32)
    return [boxes, scores, np.array(d.upto(1, 4), np.int64), np.array(d.pick(0.1, 0.5), np.float32),
            np.array(d.pick(0.0, 0.4), np.float32)], {"center_point_box": 0}, 1


def eye(d):
    return [d.array([d.upto(1, 4), d.upto(1, 4)], d.pick(np.float32, np.int64))], {"k": d.upto(-3, 3)}, 1


def whole_pool(d):
    return [d.array(d.shape(3, 5, empty=False), np.float32)], {}, 1


CASES = {
    "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm, "GroupNormalization": group_norm,
    "LRN": local_norm, "LpNormalization": length_norm, "MeanVarianceNormalization": mean_variance, "Resize": resize,
    "GridSample": grid_sample, "AffineGrid": affine_grid, "Einsum": einsum, "ScatterND": scatter_nd, "OneHot": one_hot,
    "ReverseSequence": reverse_sequence, "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth,
    "Split": parts, "Range": range_of, **{name: variadic for name in ("Sum", "Mean", "Max", "Min")}, "PRelu": prelu,
    "Clip": clip, "Shape": shape_of, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "DynamicQuantizeLinear": dynamic_quantize,
    "QLinearMatMul": q_linear_matmul, "QLinearConv": q_convolution(False), "ConvInteger": q_convolution(True),
    "RoiAlign": roi_align, "NonMaxSuppression": suppress, "EyeLike": eye,
    **{name: whole_pool for name in ("GlobalAveragePool", "GlobalMaxPool")},
}
NEAREST = {"DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv"}
