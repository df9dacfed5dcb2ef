#include "plugin/engines/perf/slot_book.h"

#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>

namespace tailtrace::perf {
namespace {

struct Held {
  std::int32_t tid;
  std::string name;
};

struct Book {
  std::mutex mutex;
  std::map<std::uint64_t, Held> held;  // in the order in which they were taken
  std::uint64_t last = 0;
};

Book& book() {
  static Book the_book;
  return the_book;
}

std::int32_t real_tid(std::int32_t tid) { return tid == 0 ? ::gettid() : tid; }

}  // namespace

SlotHold::SlotHold(std::int32_t tid, const std::string& name) {
  std::lock_guard lock(book().mutex);
  number_ = ++book().last;
  book().held.emplace(number_, Held{real_tid(tid), name});
}

SlotHold::SlotHold(SlotHold&& other) noexcept : number_(std::exchange(other.number_, 0)) {}

SlotHold& SlotHold::operator=(SlotHold&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

SlotHold::~SlotHold() {
  if (number_ == 0) return;
  std::lock_guard lock(book().mutex);
  book().held.erase(number_);
}

std::vector<std::string> slots_held(std::int32_t tid) {
  std::lock_guard lock(book().mutex);
  std::vector<std::string> names;
  for (const auto& [number, held] : book().held)
    if (held.tid == real_tid(tid)) names.push_back(held.name);
  return names;
}

}  // namespace tailtrace::perf
