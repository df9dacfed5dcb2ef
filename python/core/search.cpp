#include "python/core/search.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "decoder/history/queries/diff.h"
#include "decoder/history/queries/find.h"
#include "decoder/history/queries/why_listing.h"
#include "decoder/symbols/missing_place.h"
#include "python/core/errors.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

// Ctrl-C is answered, and progress told, between two pieces.
constexpr std::uint64_t kPiece_items = 1 << 21;

// Positions of the items from `first` to `last` that match, `limit` at most.
class Search {
 public:
  Search(ThreadHistory& thread, Wanted wanted, std::uint64_t limit)
      : thread_(thread), wanted_(std::move(wanted)), limit_(limit) {}

  // REQUIRES: the interpreter's lock is held.
  std::vector<std::int64_t> run(Range range, Order order) {
    thread_.history();
    py::gil_scoped_release release;
    Progress progress("search", range.size());
    for (std::uint64_t done = 0; range.size() != 0 && found_.size() < limit_;) {
      Range piece = range;
      std::uint64_t size = std::min(range.size(), kPiece_items);
      if (order == Order::kNewestFirst) {
        piece.first = range.last - size + 1;
        range.last = piece.first - 1;
      } else {
        piece.last = range.first + size - 1;
        range.first = piece.last + 1;
      }
      look(piece, order);
      progress.look(done += size);
    }
    progress.finish();
    return std::move(found_);
  }

 private:
  void look(Range piece, Order order) {
    thread_.with_symbols([&](Symbolizer& symbols) {
      find_items(thread_.made(), symbols, piece, wanted_, order, [&](std::uint64_t number) {
        found_.push_back(thread_.position_of(number));
        return found_.size() < limit_;
      });
      return 0;
    });
  }

  ThreadHistory& thread_;
  const Wanted wanted_;
  const std::uint64_t limit_;
  std::vector<std::int64_t> found_;
};

std::vector<std::int64_t> search(ThreadHistory& thread, std::int64_t first, std::int64_t last,
                                 bool newest_first, std::optional<std::string> location,
                                 std::optional<std::string> function, bool entries,
                                 std::optional<std::string> kind,
                                 std::optional<std::uint64_t> since,
                                 std::optional<std::uint64_t> until, std::uint64_t limit) {
  Wanted wanted;
  if (location) wanted.location = unwrap(parse_location(*location));
  if (function) wanted.location.emplace().name = std::move(*function);
  wanted.entries = entries;
  if (kind) wanted.kind = unwrap(parse_item_kind(*kind));
  wanted.since = since.value_or(wanted.since);
  wanted.until = until.value_or(wanted.until);
  thread.history();
  Search search(thread, std::move(wanted), limit);
  return search.run(thread.numbers_of(first, last),
                    newest_first ? Order::kNewestFirst : Order::kOldestFirst);
}

// The exception that says so when there is no such place, or None.
py::object missing(ThreadHistory& thread, const std::string& location, bool entries) {
  const Location place = unwrap(parse_location(location));
  std::optional<Error> error =
      thread.with_cursor_long([place, entries](HistoryCursor&, ProcessSymbols& symbols) {
        return missing_place(place, entries, symbols);
      });
  return error ? to_exception(*error) : py::none();
}

// (position, address, to, what it did) of a decision.
py::tuple decision_tuple(const ThreadHistory& thread, const Decision& decision) {
  py::object event = py::none();
  if (decision.event) event = py::str(std::string(kind_name(decision.event->kind)));
  py::object taken = py::none();
  if (decision.kind == InstructionClass::kConditional) taken = py::bool_(decision.taken);
  return py::make_tuple(thread.position_of(decision.item), decision.address.value,
                        decision.to.value, taken, event);
}

// ([(times, [decision, ...]), ...], "begin" | "gap" | "limit", position); 0: where it stands
py::tuple reasons(ThreadHistory& thread, std::int64_t position, std::size_t limit) {
  Result<Reasons> found = thread.with_cursor_long(
      [self = thread.shared_from_this(), position](HistoryCursor&, Symbolizer& symbols) {
        return find_reasons(self->made(), symbols, self->number_of(position), kMaxReasons);
      });
  Reasons made = unwrap(std::move(found));
  ToldReasons told(made, limit);
  py::list list;
  for (const FoldedDecisions& group : told.groups()) {
    py::list decisions;
    for (std::size_t i = 0; i < group.count; ++i)
      decisions.append(decision_tuple(thread, told.decision(group, i)));
    list.append(py::make_tuple(group.times, decisions));
  }
  return py::make_tuple(list, std::string(told.end_word()), thread.position_of(made.item));
}

py::object positions(const ThreadHistory& thread, Range range) {
  if (range.size() == 0) return py::none();
  return py::make_tuple(thread.position_of(range.first), thread.position_of(range.last));
}

py::object fork(const ThreadHistory& thread, std::uint64_t item) {
  if (item == 0) return py::none();
  return py::int_(thread.position_of(item));
}

// Names of both are looked up at the same time, in whatever order two threads compare them.
Result<HistoryDiff> compare(ThreadHistory& here, ThreadHistory& there, const std::string& module,
                            std::size_t limit) {
  auto whole = [](const ThreadHistory& thread) {
    return Range{thread.made().oldest(), thread.made().newest()};
  };
  auto ask = [&](Symbolizer& ours, Symbolizer& theirs) {
    return diff_histories({here.made(), ours, whole(here), module},
                          {there.made(), theirs, whole(there), module}, limit);
  };
  if (&here == &there)
    return here.with_symbols([&](Symbolizer& symbols) { return ask(symbols, symbols); });
  bool ordered = std::less<>()(&here, &there);
  ThreadHistory& outer = ordered ? here : there;
  ThreadHistory& inner = ordered ? there : here;
  return outer.with_symbols([&](Symbolizer& first) {
    return inner.with_symbols(
        [&](Symbolizer& second) { return ordered ? ask(first, second) : ask(second, first); });
  });
}

// ([(is path, function, here, there, fork here, fork there), ...], whether there are more)
py::tuple diff(ThreadHistory& here, ThreadHistory& there, const std::string& module,
               std::size_t limit) {
  here.size();
  there.size();
  HistoryDiff found =
      unwrap(interruptible([ours = here.shared_from_this(), theirs = there.shared_from_this(),
                            module, limit] { return compare(*ours, *theirs, module, limit); }));
  py::list list;
  for (const Divergence& one : found.divergences) {
    py::object function = py::none();
    if (!one.function.empty()) function = to_str(one.function);
    list.append(py::make_tuple(one.what == Divergence::What::kPath, function,
                               positions(here, one.here), positions(there, one.there),
                               fork(here, one.fork_here), fork(there, one.fork_there)));
  }
  return py::make_tuple(list, found.more);
}

}  // namespace

void bind_search(py::module_& module) {
  module.def("search", &search);
  module.def("missing", &missing);
  module.def("reasons", &reasons);
  module.def("diff", &diff);
  module.def("item_kinds", &item_kind_words);
}

}  // namespace tailtrace::python
