#include "python/core/item.h"

#include <fmt/format.h>

#include <optional>

#include "python/core/errors.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

struct ItemObject {
  PyObject_HEAD PyObject* history;
  Item item;
};

PyTypeObject* g_instruction_type = nullptr;
PyTypeObject* g_gap_type = nullptr;

const Item& item_of(PyObject* self) { return reinterpret_cast<ItemObject*>(self)->item; }

ThreadHistory& history_of(PyObject* self) {
  return py::cast<ThreadHistory&>(py::handle(reinterpret_cast<ItemObject*>(self)->history));
}

// Runs what may throw where the interpreter expects null for an error.
template <class Work>
PyObject* guarded(Work work) {
  try {
    return py::object(work()).release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

template <auto Get>
PyObject* getter(PyObject* self, void*) {
  return guarded([self] { return Get(self); });
}

py::object known_or_none(Address address) {
  if (address.is_null()) return py::none();
  return py::int_(address.value);
}

std::int64_t position_of(PyObject* self) {
  return static_cast<std::int64_t>(item_of(self).number - History::kNewest) - 1;
}
py::object get_position(PyObject* self) { return py::int_(position_of(self)); }
py::object get_number(PyObject* self) {
  return py::int_(static_cast<std::int64_t>(history_of(self).size()) + 1 + position_of(self));
}

py::object get_address(PyObject* self) { return known_or_none(item_of(self).address); }
py::object get_target(PyObject* self) { return known_or_none(item_of(self).target); }
py::object get_to(PyObject* self) { return known_or_none(item_of(self).to); }
py::object get_record(PyObject* self) {
  return py::int_(item_of(self).record + history_of(self).record_shift());
}
py::object get_time(PyObject* self) {
  if (item_of(self).time == 0) return py::none();
  return py::int_(item_of(self).time);
}
py::object get_size(PyObject* self) { return py::int_(item_of(self).size_bytes); }
py::object get_kind(PyObject* self) { return py::str(std::string(class_name(item_of(self).kind))); }

py::object get_taken(PyObject* self) {
  if (item_of(self).kind != InstructionClass::kConditional) return py::none();
  return py::bool_(item_of(self).branch != RecordKind::kNone);
}

py::object get_branch(PyObject* self) {
  if (item_of(self).branch == RecordKind::kNone) return py::none();
  return py::str(std::string(kind_name(item_of(self).branch)));
}

py::object get_reason(PyObject* self) {
  return py::str(std::string(reason_name(item_of(self).reason)));
}
py::object get_lost(PyObject* self) { return py::int_(item_of(self).lost); }
py::object get_lost_more(PyObject* self) { return py::bool_(item_of(self).lost_more); }

Bytes bytes_of(PyObject* self) {
  const Item& item = item_of(self);
  const CodeImage& code = *history_of(self).history().frame().code;
  Bytes bytes(item.size_bytes);
  bytes.resize(code.read(item.address, bytes, item.epoch));
  return bytes;
}

py::object get_bytes(PyObject* self) { return py::bytes(std::string(as_text(bytes_of(self)))); }

std::string instruction_text(PyObject* self) {
  return disassemble(bytes_of(self), item_of(self).address);
}
py::object get_instruction_text(PyObject* self) { return py::str(instruction_text(self)); }

struct Names {
  std::string function, file;
  unsigned line = 0;
};

Names names_of(PyObject* self) {
  const Address address = item_of(self).address;
  const Epoch when = item_of(self).epoch;
  return history_of(self).with_cursor([address, when](HistoryCursor&, Symbolizer& symbols) {
    Names names{symbols.function_in(address, when).name, {}, 0};
    if (std::optional<SourceLine> line = symbols.line_at(address, when)) {
      names.file = line->file;
      names.line = line->line;
    }
    return names;
  });
}

py::object str_or_none(const std::string& text) {
  if (text.empty()) return py::none();
  return to_str(text);
}
py::object int_or_none(unsigned number) {
  return number == 0 ? py::object(py::none()) : py::object(py::int_(number));
}

py::object get_function(PyObject* self) { return str_or_none(names_of(self).function); }
py::object get_file(PyObject* self) { return str_or_none(names_of(self).file); }
py::object get_line(PyObject* self) { return int_or_none(names_of(self).line); }

py::object get_inlined(PyObject* self) {
  const Address address = item_of(self).address;
  const Epoch when = item_of(self).epoch;
  std::vector<Names> found =
      history_of(self).with_cursor([address, when](HistoryCursor&, Symbolizer& symbols) {
        std::vector<Names> names;
        for (InlinedFunction& one : symbols.inlined_at(address, when))
          names.push_back({std::move(one.name), std::string(one.call_file), one.call_line});
        return names;
      });
  py::tuple inlined(found.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    inlined[i] = py::make_tuple(str_or_none(found[i].function), str_or_none(found[i].file),
                                int_or_none(found[i].line));
  return inlined;
}

// As GDB sees it: where the compiler says, and where none of it is before.
bool begins_at(const InlinedPlace& place, Address address) {
  return place.holds(address) && (place.function.entry == address || !place.holds(address - 1));
}

py::object get_begins_inlined(PyObject* self) {
  const Address address = item_of(self).address;
  const Epoch when = item_of(self).epoch;
  return py::int_(
      history_of(self).with_cursor([address, when](HistoryCursor&, Symbolizer& symbols) {
        std::vector<InlinedPlace> places = symbols.inlined_into(address, when);
        std::erase_if(places, [&](const InlinedPlace& place) { return !place.holds(address); });
        const auto older =
            std::ranges::find_if(places.rbegin(), places.rend(),
                                 [&](const auto& place) { return !begins_at(place, address); });
        return older - places.rbegin();
      }));
}

py::object get_begins_line(PyObject* self) {
  const Address address = item_of(self).address;
  const Epoch when = item_of(self).epoch;
  auto begins = [address, when](HistoryCursor&, Symbolizer& symbols) -> std::optional<bool> {
    if (!symbols.lines_beginning_at(address, when).empty()) return true;
    const auto line = symbols.line_at(address, when), before = symbols.line_at(address - 1, when);
    const bool is_inside =
        line && before && line->file == before->file && line->line == before->line;
    return is_inside ? std::nullopt : std::optional(false);
  };
  return py::cast(history_of(self).with_cursor(begins));
}

std::string text_of_gap(PyObject* self) {
  const Item& item = item_of(self);
  return gap_text({item.reason, item.address, item.lost, item.lost_more});
}
py::object get_gap_text(PyObject* self) { return py::str(text_of_gap(self)); }

PyObject* repr_instruction(PyObject* self) {
  return guarded([self] {
    const Item& item = item_of(self);
    return py::str(fmt::format("<Instruction [{}] {:#x} {}>", position_of(self), item.address.value,
                               instruction_text(self)));
  });
}

PyObject* repr_gap(PyObject* self) {
  return guarded([self] {
    return py::str(fmt::format("<Gap [{}]: {}>", position_of(self), text_of_gap(self)));
  });
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  bool comparable = (operation == Py_EQ || operation == Py_NE) && Py_TYPE(a) == Py_TYPE(b);
  if (!comparable) Py_RETURN_NOTIMPLEMENTED;
  bool same =
      reinterpret_cast<ItemObject*>(a)->history == reinterpret_cast<ItemObject*>(b)->history &&
      item_of(a).number == item_of(b).number;
  return PyBool_FromLong(same == (operation == Py_EQ));
}

Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(item_of(self).number % 0x7fffffff); }

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_DECREF(reinterpret_cast<ItemObject*>(self)->history);
  PyObject_Free(self);
  Py_DECREF(type);
}

#define TAILTRACE_GETTER(name, function, doc) \
  { name, getter<function>, nullptr, doc, nullptr }
#define TAILTRACE_COMMON_GETTERS                                                                  \
  TAILTRACE_GETTER("number", get_number,                                                          \
                   "Counted from 1, the oldest item held. Asking for it counts them all, once."), \
      TAILTRACE_GETTER("position", get_position, "Counted back from -1, the newest item."),       \
      TAILTRACE_GETTER("record", get_record,                                                      \
                       "Position of the branch record that ends its straight run."),              \
      TAILTRACE_GETTER("time", get_time,                                                          \
                       "Last time known before it, in the thread's clock units, or None.")

PyGetSetDef instruction_getters[] = {
    TAILTRACE_COMMON_GETTERS,
    TAILTRACE_GETTER("address", get_address, "Of its first byte."),
    TAILTRACE_GETTER("size", get_size, "In bytes."),
    TAILTRACE_GETTER("bytes", get_bytes, "The code as it was executed."),
    TAILTRACE_GETTER("text", get_instruction_text, "Disassembled, in Intel's syntax."),
    TAILTRACE_GETTER("kind", get_kind, "'call', 'conditional', ...; 'other' falls through."),
    TAILTRACE_GETTER("target", get_target, "Where a direct branch leads, or None."),
    TAILTRACE_GETTER("taken", get_taken, "Of a conditional branch: True or False; else None."),
    TAILTRACE_GETTER("branch", get_branch, "The kind of its branch record, or None."),
    TAILTRACE_GETTER("to", get_to, "Where its branch went, or None."),
    TAILTRACE_GETTER("function", get_function, "Name of the function it is of, or None."),
    TAILTRACE_GETTER("file", get_file, "Path of its source file, or None."),
    TAILTRACE_GETTER("line", get_line, "Line in the source file, or None."),
    TAILTRACE_GETTER("begins_line", get_begins_line,
                     "True where a statement of a line begins, False where other code of one does, "
                     "else None: where debuggers stop, do not stop, and have not left a line."),
    TAILTRACE_GETTER("inlined", get_inlined,
                     "The inlined functions that it is in, innermost first: the name of each, and "
                     "the file and line of its call, or None. `function` is what they are in."),
    TAILTRACE_GETTER(
        "begins_inlined", get_begins_inlined,
        "How many of the inlined functions that it is in begin there, innermost first."),
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyGetSetDef gap_getters[] = {
    TAILTRACE_COMMON_GETTERS,
    TAILTRACE_GETTER("address", get_address, "The first instruction not shown, or None."),
    TAILTRACE_GETTER("reason", get_reason, "'overflow', 'no-code', ...; a word for machines."),
    TAILTRACE_GETTER("text", get_gap_text, "What is missing and why, in one line."),
    TAILTRACE_GETTER("lost", get_lost, "Instructions not shown; 0 when that is not known."),
    TAILTRACE_GETTER("lost_more", get_lost_more, "Whether there may be more than `lost`."),
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject* make_type(const char* name, const char* doc, PyGetSetDef* getters, reprfunc repr) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                         {Py_tp_doc, const_cast<char*>(doc)},
                         {Py_tp_getset, getters},
                         {Py_tp_hash, reinterpret_cast<void*>(hash)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                         {0, nullptr}};
  PyType_Spec spec = {name, sizeof(ItemObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

Item Item::of(const HistoryItem& from) {
  Item item;
  item.number = from.number;
  item.record = from.record.value;
  item.time = from.time;
  item.epoch = from.epoch;
  if (from.is_gap) {
    item.address = from.gap.at;
    item.lost = from.gap.lost;
    item.lost_more = from.gap.lost_more;
    item.reason = from.gap.reason;
    return item;
  }
  item.address = from.instruction.address;
  item.target = from.instruction.target;
  item.size_bytes = from.instruction.size_bytes;
  item.kind = from.instruction.kind;
  if (from.branch != nullptr) {
    item.branch = from.branch->kind;
    item.to = from.branch->to;
  }
  return item;
}

py::object make_item(const Item& item, py::handle history) {
  PyTypeObject* type = item.is_gap() ? g_gap_type : g_instruction_type;
  auto* object = PyObject_New(ItemObject, type);
  if (object == nullptr) throw py::error_already_set();
  object->history = history.inc_ref().ptr();
  new (&object->item) Item(item);
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

void bind_items(py::module_& module) {
  g_instruction_type = make_type("tailtrace.Instruction", "One executed instruction of a History.",
                                 instruction_getters, repr_instruction);
  g_gap_type = make_type("tailtrace.Gap", "A stretch of a History that cannot be shown, and why.",
                         gap_getters, repr_gap);
  module.add_object("Instruction", reinterpret_cast<PyObject*>(g_instruction_type));
  module.add_object("Gap", reinterpret_cast<PyObject*>(g_gap_type));
}

}  // namespace tailtrace::python
