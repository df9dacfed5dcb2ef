#include "python/core/calls.h"

#include <pybind11/stl.h>

#include <algorithm>

#include "decoder/export/folded_stacks.h"
#include "decoder/history/calls/call_listing.h"
#include "decoder/history/calls/newest_calls.h"
#include "decoder/history/calls/stop_stack.h"
#include "decoder/history/calls/whole_calls.h"
#include "python/core/errors.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

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

// (function, module, file, line, address) of those that called the outermost call that is known of
// an item's, innermost first.
py::list older_callers(const Calls& calls, std::int64_t position) {
  struct Told {
    const Function* function;
    Address address;
    std::optional<SourceLine> line;
  };
  const std::uint64_t item = calls.thread->number_of(position);
  std::vector<Told> told = calls.thread->with_cursor([&](HistoryCursor&, Symbolizer& symbols) {
    const std::vector<Address>& stack = calls.thread->stack();
    CallPath path;
    if (calls.calls.holding(item))
      path = call_path(calls.thread->made(), symbols, calls.calls, item, ~std::size_t{0});
    add_older_callers(calls.thread->made(), symbols, calls.calls, stack, ~std::size_t{0}, path);
    std::vector<Told> callers;
    for (const OlderCaller& caller : path.older)
      callers.push_back({caller.function, caller.address, symbols.line_at(caller.address)});
    return callers;
  });
  auto text_or_none = [](std::string_view text) -> py::object {
    return text.empty() ? py::object(py::none()) : py::object(to_str(text));
  };
  py::list list;
  for (const Told& caller : told)
    list.append(py::make_tuple(
        text_or_none(caller.function->name), text_or_none(caller.function->module),
        text_or_none(caller.line ? caller.line->file : ""),
        caller.line ? py::object(py::int_(caller.line->line)) : py::object(py::none()),
        caller.address.value));
  return list;
}

py::str call_listing(const Calls& calls, std::uint64_t first, std::uint64_t last,
                     bool from_newest) {
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
py::str call_json_lines(const Calls& calls, std::uint64_t first, std::uint64_t last) {
  std::string text = calls.thread->with_cursor([&](HistoryCursor&, Symbolizer& symbols) {
    return text_of(kMaxListing_bytes, [&](const LineSink& sink) {
      list_calls_json(calls.thread->made(), calls.calls, symbols, {first, last}, sink,
                      JsonNumbers::kFromNewest);
    });
  });
  return to_str(text);
}

// The same for the newest whole calls of functions, newest first and equal ones in a row as one;
// and how many calls there are.
py::tuple json_lines_of(const Calls& calls, std::string_view function, std::uint64_t limit) {
  constexpr bool kFolded = true;
  std::uint64_t count = 0;
  Result<std::string> text =
      calls.thread->with_cursor([&](HistoryCursor&, Symbolizer& symbols) -> Result<std::string> {
        Result<LocationMatcher> named = functions_named(function, symbols);
        if (!named) return fail(std::move(named.error()));
        WholeCalls found = calls_of(calls.calls, *named, limit, kFolded);
        std::reverse(found.newest.begin(), found.newest.end());
        count = found.count;
        return text_of(kMaxListing_bytes, [&](const LineSink& sink) {
          list_whole_calls_json(calls.thread->made(), calls.calls, symbols, found.newest, sink,
                                JsonNumbers::kFromNewest);
        });
      });
  return py::make_tuple(to_str(unwrap(std::move(text))), count);
}

// The same for the newest calls of all functions, in the order in which they began, but for some;
// and whether more of them would be found if the calls went further back.
py::tuple json_lines_of_tree(const Calls& calls, std::uint64_t limit, std::size_t skipped) {
  bool is_cut = false;
  std::string text = calls.thread->with_cursor([&](HistoryCursor&, Symbolizer& symbols) {
    const History& history = calls.thread->made();
    const CallTree tree = newest_whole_calls(history, calls.calls, limit);
    is_cut = tree.is_cut;
    const auto left = std::span(tree.calls).subspan(std::min(skipped, tree.calls.size()));
    return text_of(kMaxListing_bytes, [&](const LineSink& sink) {
      list_whole_calls_json(history, calls.calls, symbols, left, sink, JsonNumbers::kFromNewest);
    });
  });
  return py::make_tuple(to_str(text), is_cut);
}

// Folded stacks, of which the instructions from one to another are counted.
py::list folded(const Calls& calls, std::int64_t first, std::int64_t last) {
  py::list lines;
  const auto add = [&](std::string_view line) {
    lines.append(to_str(line));
    return true;
  };
  list_folded_stacks(calls.calls, add, calls.thread->numbers_of(first, last));
  return lines;
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
      .def("last_part",
           [](const Calls& c, std::uint64_t number) { return c.calls.last_part(number); })
      .def("older_callers", &older_callers)
      .def("listing", &call_listing)
      .def("json_lines", &call_json_lines)
      .def("json_lines_of", &json_lines_of)
      .def("json_lines_of_tree", &json_lines_of_tree)
      .def("folded", &folded);
  module.def("make_calls", &make_calls);
  module.def("make_newest_calls", &make_newest_calls);
}

}  // namespace tailtrace::python
