#include "python/core/walk.h"

#include <algorithm>
#include <cstring>

#include "python/core/buffer.h"
#include "python/core/record_format.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

// One array per field of the items.
struct ItemColumns {
  std::vector<std::uint64_t> address, to, record, time;
  std::vector<std::int64_t> position;
  std::vector<std::uint8_t> size, kind, branch, gap;
  std::vector<std::int8_t> taken;

  explicit ItemColumns(std::uint64_t expected) {
    // What is asked for may be more than there is memory for: the rest is taken as it comes.
    std::uint64_t count = std::min<std::uint64_t>(expected, 1 << 24);
    for (auto* column : {&address, &to, &record, &time}) column->reserve(count);
    position.reserve(count);
    for (auto* column : {&size, &kind, &branch, &gap}) column->reserve(count);
    taken.reserve(count);
  }

  void add(const Item& item, std::uint64_t record_shift) {
    position.push_back(static_cast<std::int64_t>(item.number - History::kNewest) - 1);
    address.push_back(item.address.value);
    to.push_back(item.to.value);
    record.push_back(item.record + record_shift);
    time.push_back(item.time);
    size.push_back(item.size_bytes);
    kind.push_back(static_cast<std::uint8_t>(item.kind));
    branch.push_back(static_cast<std::uint8_t>(item.branch));
    gap.push_back(static_cast<std::uint8_t>(item.reason));
    bool conditional = item.kind == InstructionClass::kConditional;
    bool is_taken = item.branch != RecordKind::kNone;
    taken.push_back(static_cast<std::int8_t>(!conditional ? -1 : is_taken ? 1 : 0));
  }

  py::dict to_dict() && {
    py::dict dict;
    dict["position"] = own_buffer(std::move(position), "q");
    dict["address"] = own_buffer(std::move(address), "Q");
    dict["size"] = own_buffer(std::move(size), "B");
    dict["kind"] = own_buffer(std::move(kind), "B");
    dict["taken"] = own_buffer(std::move(taken), "b");
    dict["branch"] = own_buffer(std::move(branch), "B");
    dict["to"] = own_buffer(std::move(to), "Q");
    dict["record"] = own_buffer(std::move(record), "Q");
    dict["time"] = own_buffer(std::move(time), "Q");
    dict["gap"] = own_buffer(std::move(gap), "B");
    return dict;
  }
};

py::dict item_columns(ThreadHistory& thread, Stretch stretch) {
  const History& history = thread.history();
  const std::uint64_t record_shift = thread.record_shift();
  ItemColumns columns(stretch.count);
  {
    py::gil_scoped_release release;
    HistoryCursor cursor(history);
    Progress progress("columns", stretch.count);
    for (std::uint64_t i = 0; i < stretch.count; ++i) {
      progress.at(i);
      cursor.seek(stretch.number(i));
      columns.add(Item::of(cursor.item()), record_shift);
    }
    progress.finish();
  }
  return std::move(columns).to_dict();
}

template <class T>
Buffer column_of(std::span<const BranchRecord> records, const RecordColumn& from) {
  std::vector<T> column(records.size());
  {
    py::gil_scoped_release release;
    Progress progress("columns", records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      progress.at(i);
      std::memcpy(&column[i], reinterpret_cast<const char*>(&records[i]) + from.offset_bytes,
                  sizeof(T));
    }
    progress.finish();
  }
  return own_buffer(std::move(column), std::string(1, letter_of(from)));
}

Buffer record_column(std::span<const BranchRecord> records, const RecordColumn& from) {
  switch (from.size_bytes) {
    case 1:
      return column_of<std::uint8_t>(records, from);
    case 2:
      return column_of<std::uint16_t>(records, from);
    case 4:
      return column_of<std::uint32_t>(records, from);
    default:
      return column_of<std::uint64_t>(records, from);
  }
}

py::dict record_columns(ThreadHistory& thread) {
  const RecordSpan& view = thread.records();
  std::span<const BranchRecord> records = view.records;
  RecordRange still;  // where somebody writes on, all columns are of the same records
  if (view.overwritten) {
    py::gil_scoped_release release;
    still = copy_of(view);
    records = still.records;
  }
  py::dict dict;
  for (const RecordColumn& column : kRecordColumns)
    dict[column.name] = record_column(records, column);
  return dict;
}

// Python's iterator: of the interpreter's own kind, for it is called for each item.
struct IteratorObject {
  PyObject_HEAD Walker* walker;
};

PyTypeObject* g_iterator_type = nullptr;

PyObject* iterator_next(PyObject* self) {
  try {
    return reinterpret_cast<IteratorObject*>(self)->walker->next().release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* iterator_left(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<IteratorObject*>(self)->walker->left_hint());
}

void iterator_destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<IteratorObject*>(self)->walker;
  PyObject_Free(self);
  Py_DECREF(type);
}

PyMethodDef iterator_methods[] = {
    {"__length_hint__", iterator_left, METH_NOARGS, "Items that are left."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject* make_iterator_type() {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(iterator_destroy)},
                         {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                         {Py_tp_iternext, reinterpret_cast<void*>(iterator_next)},
                         {Py_tp_methods, iterator_methods},
                         {0, nullptr}};
  PyType_Spec spec = {"tailtrace.ItemIterator", sizeof(IteratorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  return reinterpret_cast<PyTypeObject*>(type);
}

py::object make_iterator(py::object history, Stretch stretch) {
  auto walker = std::make_unique<Walker>(std::move(history), stretch);
  auto* object = PyObject_New(IteratorObject, g_iterator_type);
  if (object == nullptr) throw py::error_already_set();
  object->walker = walker.release();
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

}  // namespace

Walker::Walker(py::object history, Stretch stretch)
    : object_(std::move(history)),
      cursor_(py::cast<ThreadHistory&>(object_).history()),
      stretch_(stretch) {}

void Walker::fill() {
  // The first ones come at once.
  std::uint64_t size = done_ == 0 ? 16 : kBatch_items;
  std::uint64_t end = done_ + std::min(size, left());
  batch_.clear();
  at_ = 0;
  busy_ = true;
  {
    py::gil_scoped_release release;
    for (std::uint64_t i = done_; i < end; ++i) {
      cursor_.seek(stretch_.number(i));
      if (!cursor_.valid()) {
        stretch_.count = i;
        break;
      }
      batch_.push_back(Item::of(cursor_.item()));
    }
  }
  busy_ = false;
}

py::object Walker::next() {
  if (busy_) throw py::value_error("another thread is using this iterator");
  if (left() == 0) return {};
  if (at_ == batch_.size()) fill();
  if (at_ == batch_.size()) return {};
  ++done_;
  return make_item(batch_[at_++], object_);
}

void bind_walk(py::module_& module) {
  g_iterator_type = make_iterator_type();
  module.add_object("ItemIterator", reinterpret_cast<PyObject*>(g_iterator_type));
  module.def("iterate",
             [](py::object history, std::int64_t first, std::uint64_t count, std::int64_t step) {
               return make_iterator(std::move(history), Stretch{first, count, step});
             });
  module.def("item_columns", [](ThreadHistory& history, std::int64_t first, std::uint64_t count,
                                std::int64_t step) {
    return item_columns(history, Stretch{first, count, step});
  });
  module.def("record_columns", &record_columns);
}

}  // namespace tailtrace::python
