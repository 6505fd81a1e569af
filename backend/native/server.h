// What the server offers to Python beside requests: its log and its page of metrics.
#pragma once

#include "cpython.h"

namespace penstock {

// The module that Python code is handed: log, metric, elements. A new reference; nullptr with an error raised.
PyObject* new_server_module();

}  // namespace penstock
