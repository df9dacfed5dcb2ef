#include "python/core/calls.h"

#include <pybind11/stl.h>

#include "decoder/history/call_listing.h"
#include "decoder/history/newest_calls.h"
#include "python/core/errors.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

constexpr std::size_t kMaxListing_bytes = 16 << 20;

struct Calls {
  std::shared_ptr<ThreadHistory> thread;  // its symbolizer has the functions
  CallHistory calls;
};

Calls make_calls(std::shared_ptr<ThreadHistory> thread, std::int64_t first, std::int64_t last) {
  Result<CallHistory> made =
      thread->with_cursor_long([self = thread, first, last](HistoryCursor&, Symbolizer& symbols) {
        return CallHistory::make(self->made(), symbols, self->numbers_of(first, last));
      });
  return {std::move(thread), unwrap(std::move(made))};
}

// In the order of the fields of tailtrace.Call; items by position.
py::tuple fields_of(const Calls& calls, std::uint64_t number) {
  CallSegment segment = calls.calls.at(number);
  py::object function = py::none(), module = py::none();
  if (segment.function != nullptr) {
    if (!segment.function->name.empty()) function = to_str(segment.function->name);
    if (!segment.function->module.empty()) module = to_str(segment.function->module);
  }
  const ThreadHistory& thread = *calls.thread;
  return py::make_tuple(segment.number, function, module, segment.level,
                        thread.position_of(segment.items.first),
                        thread.position_of(segment.items.last), segment.caller, segment.earlier,
                        segment.later, segment.tail_called, segment.function == nullptr);
}

py::str listing(const Calls& calls, std::uint64_t first, std::uint64_t last, bool from_newest) {
  CallListingOptions options;
  options.from_newest = from_newest;
  std::string text = calls.thread->with_cursor([&](HistoryCursor&, Symbolizer& symbols) {
    return calls_text(calls.thread->made(), calls.calls, symbols, {first, last}, options,
                      kMaxListing_bytes);
  });
  return to_str(text);
}

// The same for whole lists of calls, made of the newest items on until there are so many.
Calls make_newest_calls(std::shared_ptr<ThreadHistory> thread, std::uint64_t count) {
  Result<CallHistory> made =
      thread->with_cursor_long([self = thread, count](HistoryCursor&, Symbolizer& symbols) {
        return newest_calls(self->made(), symbols,
                            [count](std::uint64_t segments) { return segments > count; });
      });
  return {std::move(thread), unwrap(std::move(made))};
}

// One JSON object a line for each; all they name is counted from the newest.
py::str json_lines(const Calls& calls, std::uint64_t first, std::uint64_t last) {
  std::string text = calls.thread->with_cursor([&](HistoryCursor&, Symbolizer& symbols) {
    return text_of(kMaxListing_bytes, [&](const LineSink& sink) {
      list_calls_json(calls.thread->made(), calls.calls, symbols, {first, last}, sink,
                      JsonNumbers::kFromNewest);
    });
  });
  return to_str(text);
}

}  // namespace

void bind_calls(py::module_& module) {
  py::class_<Calls>(module, "Calls")
      .def_property_readonly("size", [](const Calls& c) { return c.calls.size(); })
      .def("fields", &fields_of)
      .def("holding",
           [](const Calls& c, std::int64_t position) {
             return c.calls.holding(c.thread->number_of(position));
           })
      .def("listing", &listing)
      .def("json_lines", &json_lines);
  module.def("make_calls", &make_calls);
  module.def("make_newest_calls", &make_newest_calls);
}

}  // namespace tailtrace::python
