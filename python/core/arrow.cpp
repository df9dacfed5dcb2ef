#include "python/core/arrow.h"

#include <pybind11/stl.h>

#include <cerrno>
#include <cstdint>

#include "python/core/buffer.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

// The structures of the interface (Arrow's specification, "The Arrow C data interface" and "The
// Arrow C stream interface").
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

struct Column {
  std::string name;
  Buffer buffer;
};
using Columns = std::vector<Column>;

// Arrow's letter for one of the struct module's.
const char* arrow_format(const std::string& format) {
  switch (format.empty() ? '\0' : format[0]) {
    case 'Q':
      return "L";
    case 'q':
      return "l";
    case 'I':
      return "I";
    case 'H':
      return "S";
    case 'B':
      return "C";
    case 'b':
      return "c";
    default:
      throw py::type_error("a column of this kind has no place in Arrow");
  }
}

// What one exported thing keeps; a taker may release children and parents in any order.
struct SchemaNode {
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

struct ArrayNode {
  std::optional<Buffer> buffer;
  const void* buffers[2] = {nullptr, nullptr};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
};

template <class Node, class Struct>
void release(Struct* exported) {
  auto* node = static_cast<Node*>(exported->private_data);
  for (Struct& child : node->children)
    if (child.release != nullptr) child.release(&child);
  delete node;
  exported->release = nullptr;
}

void fill_schema(ArrowSchema& schema, const char* format, std::string name) {
  auto* node = new SchemaNode{std::move(name), {}, {}};
  schema = {
      format, node->name.c_str(), nullptr, 0, 0, nullptr, nullptr, release<SchemaNode, ArrowSchema>,
      node};
}

void export_schema(const Columns& columns, ArrowSchema& schema) {
  fill_schema(schema, "+s", "");
  auto* node = static_cast<SchemaNode*>(schema.private_data);
  node->children.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    fill_schema(node->children[i], arrow_format(columns[i].buffer.format()), columns[i].name);
    node->pointers.push_back(&node->children[i]);
  }
  schema.n_children = static_cast<std::int64_t>(columns.size());
  schema.children = node->pointers.data();
}

void fill_array(ArrowArray& array, std::size_t length, std::int64_t buffers, ArrayNode* node) {
  array = {static_cast<std::int64_t>(length), 0,   0, buffers, 0, node->buffers, nullptr, nullptr,
           release<ArrayNode, ArrowArray>,    node};
}

void export_array(const Columns& columns, ArrowArray& array) {
  std::size_t length = columns.empty() ? 0 : columns[0].buffer.count();
  auto* node = new ArrayNode;
  fill_array(array, length, 1, node);
  node->children.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    auto* child = new ArrayNode;
    child->buffer = columns[i].buffer;
    child->buffers[1] = columns[i].buffer.info().ptr;
    fill_array(node->children[i], length, 2, child);
    node->pointers.push_back(&node->children[i]);
  }
  array.n_children = static_cast<std::int64_t>(columns.size());
  array.children = node->pointers.data();
}

// A capsule's end: what nobody took is released.
template <class Struct>
py::capsule make_capsule(Struct* exported, const char* name) {
  PyObject* capsule = PyCapsule_New(exported, name, [](PyObject* self) {
    auto* held = static_cast<Struct*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    if (held->release != nullptr) held->release(held);
    delete held;
  });
  if (capsule == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::capsule>(capsule);
}

// A stream of one array.
struct StreamNode {
  Columns columns;
  bool given = false;
};

StreamNode& node_of(ArrowArrayStream* stream) {
  return *static_cast<StreamNode*>(stream->private_data);
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* schema) {
  export_schema(node_of(stream).columns, *schema);
  return 0;
}

int get_next(ArrowArrayStream* stream, ArrowArray* array) {
  StreamNode& node = node_of(stream);
  if (node.given)
    *array = {};  // released: the end
  else
    export_array(node.columns, *array);
  node.given = true;
  return 0;
}

const char* get_last_error(ArrowArrayStream*) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
  delete &node_of(stream);
  stream->release = nullptr;
}

Columns columns_of(const py::dict& buffers) {
  Columns columns;
  for (auto [name, buffer] : buffers) {
    columns.push_back({py::cast<std::string>(name), py::cast<const Buffer&>(buffer)});
    (void)arrow_format(columns.back().buffer.format());  // refused before anything is handed out
  }
  return columns;
}

py::capsule arrow_schema(const py::dict& buffers) {
  Columns columns = columns_of(buffers);
  auto* schema = new ArrowSchema();
  export_schema(columns, *schema);
  return make_capsule(schema, "arrow_schema");
}

py::tuple arrow_array(const py::dict& buffers) {
  py::capsule schema = arrow_schema(buffers);
  auto* array = new ArrowArray();
  export_array(columns_of(buffers), *array);
  return py::make_tuple(schema, make_capsule(array, "arrow_array"));
}

py::capsule arrow_stream(const py::dict& buffers) {
  auto* stream = new ArrowArrayStream{get_schema, get_next, get_last_error, release_stream,
                                      new StreamNode{columns_of(buffers), false}};
  return make_capsule(stream, "arrow_array_stream");
}

}  // namespace

void bind_arrow(py::module_& module) {
  module.def("arrow_schema", &arrow_schema);
  module.def("arrow_array", &arrow_array);
  module.def("arrow_stream", &arrow_stream);
}

}  // namespace tailtrace::python
