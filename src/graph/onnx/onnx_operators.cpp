#include "graph/onnx/onnx_operators.h"

#include <tenon/support/text.h>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

constexpr int any = kAnyNumber;

// Attribute lists that several operators share. "!" marks one that must be given.
constexpr char kWindow[] =
    "auto_pad:s=NOTSET dilations:I group:i=1 kernel_shape:I pads:I strides:I";
constexpr char kReduce[] = "axes:I keepdims:i=1 noop_with_empty_axes:i=0";
constexpr char kBroadcast[] = "axis:i broadcast:i";  // ahead of opset 7
constexpr char kLegacy[] = "consumed_inputs:I";      // without meaning, ahead of opset 6

constexpr OnnxOperator kTable[] = {
    {"Abs", "6 13", kLegacy, 1, 1, 1, resolve_same},
    {"Acos", "7 22", "", 1, 1, 1, resolve_same},
    {"Acosh", "9 22", "", 1, 1, 1, resolve_same},
    {"Add", "6 7 13 14", kBroadcast, 2, 2, 1, resolve_binary},
    {"And", "1 7", kBroadcast, 2, 2, 1, resolve_binary},
    {"ArgMax", "1 11 12 13", "axis:i=0 keepdims:i=1 select_last_index:i=0", 1, 1, 1, resolve_arg},
    {"ArgMin", "1 11 12 13", "axis:i=0 keepdims:i=1 select_last_index:i=0", 1, 1, 1, resolve_arg},
    {"Asin", "7 22", "", 1, 1, 1, resolve_same},
    {"Asinh", "9 22", "", 1, 1, 1, resolve_same},
    {"Atan", "7 22", "", 1, 1, 1, resolve_same},
    {"Atanh", "9 22", "", 1, 1, 1, resolve_same},
    {"AveragePool", "1 7 10 11 19 22",
     "auto_pad:s=NOTSET ceil_mode:i=0 count_include_pad:i=0 dilations:I kernel_shape:I! pads:I "
     "strides:I",
     1, 1, 1, resolve_average_pool},
    {"BatchNormalization", "6 7 9 14 15",
     "epsilon:f=1e-5 momentum:f=0.9 is_test:i spatial:i=1 training_mode:i=0", 5, 5, 5,
     resolve_batch_norm, refuse_batch_norm},
    {"BitCast", "26", "to:i!", 1, 1, 1, resolve_bit_cast, refuse_bit_cast},
    {"BitShift", "11", "direction:s!", 2, 2, 1, resolve_bit_shift},
    {"BitwiseAnd", "18", "", 2, 2, 1, resolve_bit},
    {"BitwiseNot", "18", "", 1, 1, 1, resolve_bit},
    {"BitwiseOr", "18", "", 2, 2, 1, resolve_bit},
    {"BitwiseXor", "18", "", 2, 2, 1, resolve_bit},
    {"Cast", "6 9 13 19 21 23 24 25 28", "round_mode:s=up saturate:i=1 to:i!", 1, 1, 1,
     resolve_cast, refuse_cast},
    {"CastLike", "15 19 21 23 24 25 28", "round_mode:s=up saturate:i=1", 2, 2, 1,
     resolve_cast_like},
    {"Ceil", "6 13", "", 1, 1, 1, resolve_same},
    {"Celu", "12", "alpha:f=1", 1, 1, 1, resolve_numbers},
    {"Clip", "6 11 12 13", "min:f max:f", 1, 3, 1, resolve_clip},
    {"Concat", "4 11 13", "axis:i!", 1, any, 1, resolve_concat},
    {"Constant", "1 9 11 12 13 19 21 23 24 25",
     "value:t value_float:f value_floats:F value_int:i value_ints:I", 0, 0, 1, resolve_constant,
     refuse_constant},
    {"ConstantOfShape", "9 20 21 23 24 25", "value:t", 1, 1, 1, resolve_constant_of_shape,
     refuse_constant_of_shape},
    {"Conv", "1 11 22", kWindow, 2, 3, 1, resolve_conv},
    {"ConvTranspose", "1 11 22",
     "auto_pad:s=NOTSET dilations:I group:i=1 kernel_shape:I output_padding:I output_shape:I "
     "pads:I strides:I",
     2, 3, 1, resolve_conv_transpose},
    {"Cos", "7 22", "", 1, 1, 1, resolve_same},
    {"Cosh", "9 22", "", 1, 1, 1, resolve_same},
    {"CumSum", "11 14", "exclusive:i=0 reverse:i=0", 2, 2, 1, resolve_cumulative_sum},
    {"DepthToSpace", "1 11 13", "blocksize:i! mode:s=DCR", 1, 1, 1, resolve_depth_to_space},
    {"Div", "6 7 13 14", kBroadcast, 2, 2, 1, resolve_binary},
    {"Dropout", "6 7 10 12 13 22", "is_test:i ratio:f=0.5 seed:i", 1, 3, 2, resolve_dropout},
    {"Elu", "6 22", "alpha:f=1", 1, 1, 1, resolve_numbers},
    {"Equal", "1 7 11 13 19", kBroadcast, 2, 2, 1, resolve_binary},
    {"Erf", "9 13", "", 1, 1, 1, resolve_same},
    {"Exp", "6 13", "", 1, 1, 1, resolve_same},
    {"Expand", "8 13", "", 2, 2, 1, resolve_expand},
    {"EyeLike", "9 22", "dtype:i k:i=0", 1, 1, 1, resolve_eye_like, refuse_eye_like},
    {"Flatten", "1 9 11 13 21 23 24 25", "axis:i=1", 1, 1, 1, resolve_flatten},
    {"Floor", "6 13", "", 1, 1, 1, resolve_same},
    {"Gather", "1 11 13", "axis:i=0", 2, 2, 1, resolve_gather},
    {"GatherElements", "11 13", "axis:i=0", 2, 2, 1, resolve_gather},
    {"GatherND", "11 12 13", "batch_dims:i=0", 2, 2, 1, resolve_gather_nd},
    {"Gelu", "20", "approximate:s=none", 1, 1, 1, resolve_gelu},
    {"Gemm", "6 7 9 11 13", "alpha:f=1 beta:f=1 broadcast:i transA:i=0 transB:i=0", 2, 3, 1,
     resolve_gemm},
    {"GlobalAveragePool", "1 22", "", 1, 1, 1, resolve_global_average_pool},
    {"GlobalMaxPool", "1 22", "", 1, 1, 1, resolve_global_max_pool},
    {"Greater", "1 7 9 13", kBroadcast, 2, 2, 1, resolve_binary},
    {"GreaterOrEqual", "12 16", "", 2, 2, 1, resolve_binary},
    {"GroupNormalization", "21", "epsilon:f=1e-5 num_groups:i! stash_type:i=1", 3, 3, 1,
     resolve_group_norm, refuse_layer_norm},
    {"HardSigmoid", "6 22", "alpha:f=0.2 beta:f=0.5", 1, 1, 1, resolve_numbers},
    {"HardSwish", "14 22", "", 1, 1, 1, resolve_same},
    {"Hardmax", "13", "axis:i=-1", 1, 1, 1, resolve_hardmax},
    {"Identity", "1 13 14 16 19 21 23 24 25", "", 1, 1, 1, resolve_identity},
    {"InstanceNormalization", "6 22", "epsilon:f=1e-5", 3, 3, 1, resolve_instance_norm},
    {"IsInf", "10 20", "detect_negative:i=1 detect_positive:i=1", 1, 1, 1, resolve_is_inf},
    {"IsNaN", "9 13 20", "", 1, 1, 1, resolve_same},
    {"LRN", "1 13", "alpha:f=0.0001 beta:f=0.75 bias:f=1 size:i!", 1, 1, 1, resolve_lrn},
    {"LayerNormalization", "17", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", 2, 3, 3,
     resolve_layer_norm, refuse_layer_norm},
    {"LeakyRelu", "6 16", "alpha:f=0.01", 1, 1, 1, resolve_numbers},
    {"Less", "1 7 9 13", kBroadcast, 2, 2, 1, resolve_binary},
    {"LessOrEqual", "12 16", "", 2, 2, 1, resolve_binary},
    {"Log", "6 13", "", 1, 1, 1, resolve_same},
    {"LogSoftmax", "1 11 13", "axis:i", 1, 1, 1, resolve_softmax},
    {"LpNormalization", "1 22", "axis:i=-1 p:i=2", 1, 1, 1, resolve_lp_norm},
    {"LpPool", "2 11 18 22",
     "auto_pad:s=NOTSET ceil_mode:i=0 dilations:I kernel_shape:I! p:i=2 pads:I strides:I", 1, 1, 1,
     resolve_lp_pool},
    {"MatMul", "1 9 13", "", 2, 2, 1, resolve_matmul},
    {"Max", "6 8 12 13", "", 1, any, 1, resolve_variadic},
    {"MaxPool", "1 8 10 11 12 22",
     "auto_pad:s=NOTSET ceil_mode:i=0 dilations:I kernel_shape:I! pads:I storage_order:i=0 "
     "strides:I",
     1, 1, 2, resolve_max_pool, refuse_max_pool},
    {"Mean", "6 8 13", "", 1, any, 1, resolve_mean},
    {"MeanVarianceNormalization", "9 13", "axes:I", 1, 1, 1, resolve_mean_variance_norm},
    {"Min", "6 8 12 13", "", 1, any, 1, resolve_variadic},
    {"Mish", "18 22", "", 1, 1, 1, resolve_same},
    {"Mod", "10 13", "fmod:i=0", 2, 2, 1, resolve_mod},
    {"Mul", "6 7 13 14", kBroadcast, 2, 2, 1, resolve_binary},
    {"Neg", "6 13", "", 1, 1, 1, resolve_same},
    {"NegativeLogLikelihoodLoss", "12 13 22", "ignore_index:i reduction:s=mean", 2, 3, 1,
     resolve_likelihood_loss},
    {"Not", "1", "", 1, 1, 1, resolve_same},
    {"OneHot", "9 11 28", "axis:i=-1", 3, 3, 1, resolve_one_hot},
    {"Or", "1 7", kBroadcast, 2, 2, 1, resolve_binary},
    {"PRelu", "6 7 9 16", "", 2, 2, 1, resolve_prelu},
    {"Pad", "2 11 13 18 19 21 23 24 25", "mode:s=constant pads:I value:f", 1, 4, 1, resolve_pad,
     refuse_pad},
    {"Pow", "1 7 12 13 15", kBroadcast, 2, 2, 1, resolve_pow},
    {"RMSNormalization", "23", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", 2, 2, 1, resolve_rms_norm,
     refuse_layer_norm},
    {"Range", "11 27", "stash_type:i", 3, 3, 1, resolve_range},
    {"Reciprocal", "6 13", "", 1, 1, 1, resolve_same},
    {"ReduceL1", "1 11 13 18", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceL2", "1 11 13 18", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceLogSum", "1 11 13 18", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceLogSumExp", "1 11 13 18", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceMax", "1 11 12 13 18 20", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceMean", "1 11 13 18", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceMin", "1 11 12 13 18 20", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceProd", "1 11 13 18", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceSum", "1 11 13", kReduce, 1, 2, 1, resolve_reduce},
    {"ReduceSumSquare", "1 11 13 18", kReduce, 1, 2, 1, resolve_reduce},
    {"Relu", "6 13 14", "", 1, 1, 1, resolve_same},
    {"Reshape", "5 13 14 19 21 23 24 25", "allowzero:i=0", 2, 2, 1, resolve_reshape},
    {"Round", "11 22", "", 1, 1, 1, resolve_same},
    {"Selu", "6 22", "alpha:f=1.67326319217681884765625 gamma:f=1.05070102214813232421875", 1, 1, 1,
     resolve_selu},
    {"Shape", "1 13 15 19 21 23 24 25", "end:i start:i=0", 1, 1, 1, resolve_shape},
    {"Shrink", "9", "bias:f=0 lambd:f=0.5", 1, 1, 1, resolve_shrink},
    {"Sigmoid", "6 13", "", 1, 1, 1, resolve_same},
    {"Sign", "9 13", "", 1, 1, 1, resolve_same},
    {"Sin", "7 22", "", 1, 1, 1, resolve_same},
    {"Sinh", "9 22", "", 1, 1, 1, resolve_same},
    {"Size", "1 13 19 21 23 24 25", "", 1, 1, 1, resolve_size},
    {"Slice", "1 10 11 13", "axes:I ends:I starts:I", 1, 5, 1, resolve_slice},
    {"Softmax", "1 11 13", "axis:i", 1, 1, 1, resolve_softmax},
    {"SoftmaxCrossEntropyLoss", "12 13", "ignore_index:i reduction:s=mean", 2, 3, 2,
     resolve_cross_entropy_loss},
    {"Softplus", "1 22", "", 1, 1, 1, resolve_same},
    {"Softsign", "1 22", "", 1, 1, 1, resolve_same},
    {"SpaceToDepth", "1 13 28", "blocksize:i! mode:s=DCR", 1, 1, 1, resolve_space_to_depth},
    {"Split", "2 11 13 18", "axis:i=0 num_outputs:i split:I", 1, 2, any, resolve_split},
    {"Sqrt", "6 13", "", 1, 1, 1, resolve_same},
    {"Squeeze", "1 11 13 21 23 24 25", "axes:I", 1, 2, 1, resolve_squeeze},
    {"Sub", "6 7 13 14", kBroadcast, 2, 2, 1, resolve_binary},
    {"Sum", "6 8 13", "", 1, any, 1, resolve_sum},
    {"SwiGLU", "28", "alpha:f=1", 2, 2, 1, resolve_swiglu},
    {"Swish", "24", "alpha:f=1", 1, 1, 1, resolve_numbers},
    {"Tan", "7 22", "", 1, 1, 1, resolve_same},
    {"Tanh", "6 13", "", 1, 1, 1, resolve_same},
    {"ThresholdedRelu", "10 22", "alpha:f=1", 1, 1, 1, resolve_numbers},
    {"Tile", "6 13", "", 2, 2, 1, resolve_tile},
    {"Transpose", "1 13 21 23 24 25", "perm:I", 1, 1, 1, resolve_transpose},
    {"Trilu", "14", "upper:i=1", 1, 2, 1, resolve_trilu},
    {"Unsqueeze", "1 11 13 21 23 24 25", "axes:I", 1, 2, 1, resolve_unsqueeze},
    {"Where", "9 16", "", 3, 3, 1, resolve_where},
    {"Xor", "1 7", kBroadcast, 2, 2, 1, resolve_binary},
};

}  // namespace

std::span<const OnnxOperator> onnx_operators() { return kTable; }

const OnnxOperator* find_onnx_operator(std::string_view op) {
  for (const OnnxOperator& row : kTable)
    if (row.op == op) return &row;
  return nullptr;
}

std::vector<AttributeSpec> attribute_specs(const OnnxOperator& row) {
  std::vector<AttributeSpec> specs;
  for (const std::string& entry : split_text(row.attributes, ' ')) {
    if (entry.empty()) continue;
    const size_t colon = entry.find(':');
    AttributeSpec spec{entry.substr(0, colon), entry[colon + 1], "", false};
    const std::string rest = entry.substr(colon + 2);
    spec.required = rest == "!";
    if (!rest.empty() && rest[0] == '=') spec.default_text = rest.substr(1);
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace tenon
