#include "server.h"

#include <string>
#include <vector>

#include "interpreter.h"
#include "request.h"
#include "triton.h"

namespace penstock {
namespace {

// log(level, text)
PyObject* log_text(PyObject*, PyObject* arguments) {
  int level = 0;
  PyObject* given = nullptr;
  if (!PyArg_ParseTuple(arguments, "iO", &level, &given)) return nullptr;
  const std::string told = bytes_of(given);
  {
    Let others;  // who reads the log may be slow
    take_error(TRITONSERVER_LogMessage(level, "penstock", 0, told.c_str()));
  }
  Py_IncRef(none);
  return none;
}

// A series on the page of metrics. It stays there for good, as a counter must: so Python keeps it.
struct Series {
  PyObject base;
  TRITONSERVER_Metric* metric;
};

PyTypeObject* series_type = nullptr;

template <TRITONSERVER_Error* (*change)(TRITONSERVER_Metric*, double)>
PyObject* change_series(PyObject* self, PyObject* value) {
  const double by = PyFloat_AsDouble(value);
  if (PyErr_Occurred() != nullptr) return nullptr;
  take_error(change(reinterpret_cast<Series*>(self)->metric, by));
  Py_IncRef(none);
  return none;
}

PyMethodDef series_methods[] = {
    {"increment", change_series<TRITONSERVER_MetricIncrement>, METH_O, nullptr},
    {"set", change_series<TRITONSERVER_MetricSet>, METH_O, nullptr},
    {"observe", change_series<TRITONSERVER_MetricObserve>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot series_slots[] = {{Py_tp_methods, series_methods}, {0, nullptr}};
PyType_Spec series_spec = {"penstock.Series", sizeof(Series), 0, Py_TPFLAGS_DEFAULT, series_slots};

class Labels {
 public:
  explicit Labels(PyObject* pairs) {
    for (Py_ssize_t index = 0; index < PyList_Size(pairs); ++index) {
      PyObject* pair = PyList_GetItem(pairs, index);
      const std::string name = bytes_of(PyTuple_GetItem(pair, 0)), value = bytes_of(PyTuple_GetItem(pair, 1));
      all.push_back(TRITONSERVER_ParameterNew(name.c_str(), TRITONSERVER_PARAMETER_STRING, value.c_str()));
    }
  }
  ~Labels() {
    for (const TRITONSERVER_Parameter* one : all) TRITONSERVER_ParameterDelete(const_cast<TRITONSERVER_Parameter*>(one));
  }
  std::vector<const TRITONSERVER_Parameter*> all;
};

TRITONSERVER_Error* make_metric(
    TRITONSERVER_MetricKind kind, const std::string& name, const std::string& doc, Labels& labels,
    const std::vector<double>& bounds, TRITONSERVER_Metric** metric) {
  TRITONSERVER_MetricFamily* family = nullptr;
  if (auto* error = TRITONSERVER_MetricFamilyNew(&family, kind, name.c_str(), doc.c_str())) return error;
  if (kind != TRITONSERVER_METRIC_KIND_HISTOGRAM) {
    return TRITONSERVER_MetricNew(metric, family, labels.all.data(), labels.all.size());
  }
  TRITONSERVER_MetricArgs* args = nullptr;
  if (auto* error = TRITONSERVER_MetricArgsNew(&args)) return error;
  TRITONSERVER_Error* error = TRITONSERVER_MetricArgsSetHistogram(args, bounds.data(), bounds.size());
  if (error == nullptr) error = TRITONSERVER_MetricNewWithArgs(metric, family, labels.all.data(), labels.all.size(), args);
  take_error(TRITONSERVER_MetricArgsDelete(args));
  return error;
}

// metric(kind, name, doc, [(label, value), ...], [bound, ...]): the series, a new one or that of the same name and labels.
PyObject* metric(PyObject*, PyObject* arguments) {
  int kind = 0;
  PyObject *name = nullptr, *doc = nullptr, *pairs = nullptr, *numbers = nullptr;
  if (!PyArg_ParseTuple(arguments, "iOOOO", &kind, &name, &doc, &pairs, &numbers)) return nullptr;
  Labels labels(pairs);
  std::vector<double> bounds;
  for (Py_ssize_t index = 0; index < PyList_Size(numbers); ++index) {
    bounds.push_back(PyFloat_AsDouble(PyList_GetItem(numbers, index)));
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  auto* series = reinterpret_cast<Series*>(PyType_GenericAlloc(series_type, 0));
  if (series == nullptr) return nullptr;
  const std::string failure = take_error(make_metric(
      static_cast<TRITONSERVER_MetricKind>(kind), bytes_of(name), bytes_of(doc), labels, bounds, &series->metric));
  if (failure.empty()) return &series->base;
  Py_DecRef(&series->base);
  PyErr_SetString(*runtime_error, failure.c_str());
  return nullptr;
}

PyMethodDef server_functions[] = {
    {"log", log_text, METH_VARARGS, nullptr},
    {"metric", metric, METH_VARARGS, nullptr},
    {"elements", elements, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef server_module = {{1, nullptr}, nullptr,          0,       nullptr, "penstock_server", nullptr,
                             -1,           server_functions, nullptr, nullptr, nullptr,           nullptr};

}  // namespace

PyObject* new_server_module() {
  if (!prepare_request_types()) return nullptr;
  if (series_type == nullptr) series_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&series_spec));
  return series_type == nullptr ? nullptr : PyModule_Create2(&server_module, PYTHON_API_VERSION);
}

}  // namespace penstock
