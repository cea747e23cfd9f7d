#pragma once
// The whole public API.
#include <tenon/autotvm/tune.h>
#include <tenon/compile/compile.h>
#include <tenon/driver/driver.h>
#include <tenon/graph/network.h>
#include <tenon/records/lookup.h>
#include <tenon/runtime/array.h>
#include <tenon/runtime/npy.h>
#include <tenon/schedule/knobs.h>
#include <tenon/schedule/roles.h>
#include <tenon/schedule/schedule.h>
#include <tenon/target/peaks.h>
#include <tenon/target/target.h>
#include <tenon/te/te.h>
