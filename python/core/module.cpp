// The compiled half of the package; tailtrace/*.py is what users see.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "decoder/bundle/bundle.h"
#include "decoder/export/lcov.h"
#include "decoder/history/counts.h"
#include "decoder/history/listing.h"
#include "decoder/history/loops.h"
#include "python/core/arrow.h"
#include "python/core/attach.h"
#include "python/core/buffer.h"
#include "python/core/calls.h"
#include "python/core/errors.h"
#include "python/core/progress.h"
#include "python/core/record_format.h"
#include "python/core/recording.h"
#include "python/core/search.h"
#include "python/core/walk.h"

namespace tailtrace::python {
namespace {

namespace py = pybind11;

// Text that is asked for at once is for people.
ThreadHistories open_path(const std::string& path,
                          const std::vector<std::pair<std::uint64_t, py::bytes>>& code) {
  GivenCode given;
  for (const auto& [address, bytes] : code) {
    ByteSpan span = as_bytes(static_cast<std::string_view>(bytes));
    given.emplace_back(Address{address}, Bytes(span.begin(), span.end()));
  }
  auto sources =
      interruptible([path, given = std::move(given)] { return open_sources(path, given); });
  ThreadHistories threads;
  for (ThreadSource& source : unwrap(std::move(sources)))
    threads.push_back(std::make_shared<ThreadHistory>(std::move(source)));
  return threads;
}

// None where there is no such item.
py::object item_at(py::object self, std::int64_t position) {
  auto& thread = py::cast<ThreadHistory&>(self);
  std::optional<Item> item = thread.with_cursor(
      [&thread, position](HistoryCursor& cursor, Symbolizer&) -> std::optional<Item> {
        cursor.seek(thread.number_of(position));
        if (!cursor.valid()) return std::nullopt;
        return Item::of(cursor.item());
      });
  return item ? make_item(*item, self) : py::none();
}

bool holds(ThreadHistory& thread, std::int64_t position) {
  const History& history = thread.history();
  if (position >= 0) return false;
  const std::uint64_t number = thread.number_of(position);
  if (history.has_met(number)) return true;
  return interruptible(
      [self = thread.shared_from_this(), number] { return self->made().holds(number); });
}

py::str listing(ThreadHistory& thread, std::int64_t first, std::int64_t last, bool from_newest,
                bool lines, bool addresses, bool bytes, bool fold) {
  ListingOptions options;
  options.from_newest = from_newest;
  options.lines = lines;
  options.addresses = addresses;
  options.bytes = bytes;
  options.fold = fold;
  if (!from_newest) thread.size();
  std::string text = thread.with_cursor_long([self = thread.shared_from_this(), first, last,
                                              options](HistoryCursor&, Symbolizer& symbols) {
    return instructions_text(self->made(), symbols, self->numbers_of(first, last), options,
                             kMaxListing_bytes);
  });
  return to_str(text);
}

// The items of a stretch as the debuggers' scripts have them: one JSON object a line.
py::str json_lines(ThreadHistory& thread, std::int64_t first, std::int64_t last) {
  std::string text = thread.with_cursor([&](HistoryCursor&, Symbolizer& symbols) {
    return text_of(kMaxListing_bytes, [&](const LineSink& sink) {
      list_instructions_json(thread.made(), symbols, thread.numbers_of(first, last), sink,
                             JsonNumbers::kFromNewest);
    });
  });
  return to_str(text);
}

Coverage coverage_of(ThreadHistory& thread, std::int64_t first, std::int64_t last) {
  return thread.with_cursor_long(
      [self = thread.shared_from_this(), first, last](HistoryCursor&, Symbolizer& symbols) {
        Coverage found;
        found.add(self->made(), symbols, self->numbers_of(first, last));
        return found;
      });
}

// How often each line was executed in a stretch: {file: {line: times}}.
py::dict coverage(ThreadHistory& thread, std::int64_t first, std::int64_t last) {
  const Coverage found = coverage_of(thread, first, last);
  py::dict files;
  for (const auto& [path, file] : found.files()) {
    py::dict lines;
    for (const auto& [number, line] : file.lines) lines[py::int_(number)] = py::int_(line.times);
    files[to_str(path)] = lines;
  }
  return files;
}

// The same as geninfo writes it.
py::list lcov(ThreadHistory& thread, std::int64_t first, std::int64_t last) {
  py::list lines;
  list_lcov(
      coverage_of(thread, first, last), [](const std::string&) { return true; },
      [&](std::string_view line) {
        lines.append(to_str(line));
        return true;
      });
  return lines;
}

// (first, last, rounds, head, back, exit) of each; no exit where none is known.
py::list loops(ThreadHistory& thread, std::int64_t first, std::int64_t last,
               std::uint64_t min_rounds) {
  thread.history();
  std::vector<Loop> found =
      interruptible([self = thread.shared_from_this(), first, last, min_rounds] {
        return find_loops(self->made(), self->numbers_of(first, last), min_rounds);
      });
  py::list list;
  for (const Loop& loop : found)
    list.append(py::make_tuple(
        thread.position_of(loop.items.first), thread.position_of(loop.items.last), loop.rounds,
        loop.head.value, loop.back.value,
        loop.exit.is_null() ? py::object(py::none()) : py::object(py::int_(loop.exit.value))));
  return list;
}

// (address, times, transfers, whether it is a conditional branch) of each.
py::list counts(ThreadHistory& thread, std::int64_t first, std::int64_t last, std::uint64_t begin,
                std::uint64_t end) {
  thread.history();
  auto found = interruptible([self = thread.shared_from_this(), first, last, begin, end] {
    return count_executions(self->made(), self->numbers_of(first, last), {begin}, {end});
  });
  py::list list;
  for (const auto& [address, count] : found)
    list.append(py::make_tuple(address.value, count.times, count.transfers,
                               count.kind == InstructionClass::kConditional));
  return list;
}

// What of it cannot be used by others.
std::vector<py::object> save(const ThreadHistories& threads, const std::string& path) {
  for (const auto& thread : threads) thread->history();
  auto remarks = interruptible([threads, path]() -> Result<std::vector<Error>> {
    Result<BundleWriter> writer = BundleWriter::create(path);
    if (!writer) return fail(std::move(writer.error()));
    BundleAbout about;
    for (const auto& thread : threads) {
      if (auto ok = writer->add(thread->made().snapshot(), thread->maps(), thread->perf_map()); !ok)
        return fail(std::move(ok.error()));
      const ThreadSource& source = thread->source();
      if (!source.name.empty()) about.threads[source.thread].name = source.name;
    }
    writer->describe(std::move(about));
    for (const auto& thread : threads)
      if (thread->source().saved)
        if (auto ok = writer->carry_over(*thread->source().saved); !ok)
          return fail(std::move(ok.error()));
    if (auto ok = writer->finish(); !ok) return fail(std::move(ok.error()));
    return writer->remarks();
  });
  std::vector<py::object> told;
  for (const Error& remark : unwrap(std::move(remarks))) told.push_back(to_exception(remark));
  return told;
}

py::object stop_of(ThreadHistory& thread) {
  std::optional<Address> stop = thread.history().stop();
  return stop ? py::object(py::int_(stop->value)) : py::none();
}

void bind_history(py::module_& module) {
  py::class_<ThreadHistory, std::shared_ptr<ThreadHistory>>(module, "History")
      .def_property_readonly("pid", [](ThreadHistory& h) { return h.source().thread.pid; })
      .def_property_readonly("tid", [](ThreadHistory& h) { return h.source().thread.tid; })
      .def_property_readonly("engine", [](ThreadHistory& h) { return h.source().engine; })
      .def_property_readonly("live", [](ThreadHistory& h) { return h.source().live; })
      .def_property_readonly("closed", &ThreadHistory::closed)
      .def_property_readonly("size", &ThreadHistory::size)
      .def_property_readonly("gaps",
                             [](ThreadHistory& h) {
                               h.size();
                               return h.made().gaps();
                             })
      .def_property_readonly("index_bytes",
                             [](ThreadHistory& h) { return h.history().index_size_bytes(); })
      .def_property_readonly("is_long",
                             [](ThreadHistory& h) {
                               h.history();
                               return h.is_long();
                             })
      .def_property_readonly("complete", [](ThreadHistory& h) { return h.history().complete(); })
      .def_property_readonly("stop", &stop_of)
      .def_property_readonly("first_record",
                             [](ThreadHistory& h) { return h.records().first.value; })
      .def_property_readonly("overwritten",
                             [](ThreadHistory& h) -> std::size_t {
                               const RecordSpan& span = h.records();
                               return span.overwritten ? span.overwritten() : 0;
                             })
      .def("records",
           [](ThreadHistory& h) {
             const RecordSpan& span = h.records();
             return Buffer(span.owner, span.records, record_format());
           })
      .def("at", &item_at)
      .def("holds", &holds)
      .def("listing", &listing)
      .def("json_lines", &json_lines)
      .def("coverage", &coverage)
      .def("lcov", &lcov)
      .def("loops", &loops)
      .def("counts", &counts)
      .def_property_readonly("maps",
                             [](ThreadHistory& h) {
                               h.history();
                               return to_str(h.maps());
                             })
      .def("close", &ThreadHistory::close);
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The compiled half of tailtrace.";
  module.attr("version") = TAILTRACE_VERSION;
  module.attr("record_format") = record_format();
  module.attr("record_struct") = record_struct();
  module.def("open", &open_path);
  module.def("save", &save);
  module.def("kind_name", [](int kind) {
    return std::string(kind_name(static_cast<RecordKind>(static_cast<std::uint8_t>(kind))));
  });
  bind_arrow(module);
  bind_attach(module);
  bind_buffer(module);
  bind_items(module);
  bind_history(module);
  bind_progress(module);
  bind_walk(module);
  bind_calls(module);
  bind_search(module);
  bind_recording(module);
  bind_hardware_recording(module);
}

}  // namespace tailtrace::python
