// libtailtrace in C++: the objects of tailtrace.h with owners, ranges and exceptions. Header only,
// standard library only: what is linked to is the stable C interface.
//
// Threading: an object belongs to one thread at a time; different objects are independent.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <tailtrace/tailtrace.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tailtrace_api {

// Its what() is the whole text, with why, fix and what works meanwhile.
class Failure : public std::runtime_error {
 public:
  explicit Failure(tt_error* error) : runtime_error(text_of(error)) {
    code_ = tt_error_code(error);
    why_ = tt_error_why(error);
    fix_ = tt_error_fix(error);
    tt_error_free(error);
  }
  int code() const { return code_; }
  const std::string& why() const { return why_; }
  const std::string& fix() const { return fix_; }

  static std::string text_of(const tt_error* error) {
    std::string text = tt_error_what(error);
    auto add = [&](const char* name, const char* part) {
      if (*part != 0) text += std::string("\n  ") + name + part;
    };
    add("why:  ", tt_error_why(error));
    add("fix:  ", tt_error_fix(error));
    add("now:  ", tt_error_now(error));
    return text;
  }

 private:
  int code_;
  std::string why_, fix_;
};

// An executed instruction or a gap: see tt_item.
struct Item {
  std::uint64_t number;
  std::uint64_t address;
  std::uint64_t time;
  bool is_gap;
  std::string text;
};

// What a stopped thread did last, as records and as numbered items.
class Snapshot {
 public:
  explicit Snapshot(tt_snapshot* snapshot) : snapshot_(snapshot) {}

  std::span<const tt_record> records() const {
    std::size_t count = 0;
    const tt_record* first = tt_snapshot_records(snapshot_.get(), &count);
    return {first, count};
  }
  std::uint64_t first() const { return tt_snapshot_first(snapshot_.get()); }
  bool complete() const { return tt_snapshot_complete(snapshot_.get()) != 0; }
  std::int32_t pid() const { return tt_snapshot_pid(snapshot_.get()); }
  std::int32_t tid() const { return tt_snapshot_tid(snapshot_.get()); }
  std::string name() const { return tt_snapshot_name(snapshot_.get()); }
  std::string hardware() const { return tt_snapshot_hardware(snapshot_.get()); }

  // Instructions and gaps, numbered from 1.
  std::uint64_t size() const { return tt_snapshot_size(snapshot_.get()); }
  // From -1, the newest, down to -size(), or from 1 up. Throws std::out_of_range.
  Item at(std::int64_t index) const {
    std::uint64_t number = static_cast<std::uint64_t>(index);
    if (index < 0) number += size() + 1;
    tt_item item{};
    item.size_bytes = sizeof item;
    if (tt_snapshot_item(snapshot_.get(), number, &item) != 0)
      throw std::out_of_range("there is no such item in the history");
    std::string text(256, '\0');
    int length = tt_snapshot_text(snapshot_.get(), number, text.data(), text.size());
    text.resize(std::min(text.size() - 1, static_cast<std::size_t>(length)));
    return {item.number, item.address, item.time, item.is_gap != 0, std::move(text)};
  }

 private:
  struct Free {
    void operator()(tt_snapshot* snapshot) const { tt_snapshot_free(snapshot); }
  };
  std::unique_ptr<tt_snapshot, Free> snapshot_;
};

// A place that a debug register watches: see tt_place.
struct Place {
  std::uint64_t address = 0;
  int on = TT_EXECUTE;
  std::uint32_t width = 8;  // of data, in bytes
  int action = TT_LOG;
  bool flexible = false;
  std::uint64_t registers = 0;
  std::string name = "a marker";

  // It refers to this place's name.
  tt_place raw() const {
    return {sizeof(tt_place), address,   on,          action, width,
            flexible ? 1 : 0, registers, name.c_str()};
  }
};

// What to record with, and how much of it: see tt_options.
struct Options {
  std::string hardware = "auto";
  std::uint64_t buffer_bytes = 0;
  std::uint64_t records = 0;
  std::vector<Place> places;    // whose hits are put into histories
  std::uint64_t resume_at = 0;  // the trace goes on there
  std::uint64_t pause_at = 0;   // and pauses there
  bool kernel = false;          // the kernel's code as well
  std::string settings;         // of Intel PT: see tt_options
  std::string filters;          // the same

  // Calls back with what the C interface takes, which lives meanwhile.
  template <class Use>
  auto with_raw(Use use) const {
    std::vector<tt_place> raw_places;
    for (const Place& place : places) raw_places.push_back(place.raw());
    const tt_options raw{sizeof(tt_options), hardware.c_str(),  buffer_bytes,   records,
                         raw_places.data(),  raw_places.size(), resume_at,      pause_at,
                         kernel ? 1 : 0,     settings.c_str(),  filters.c_str()};
    return use(&raw);
  }
};

// A hit of a place: see tt_hit.
struct Hit {
  std::uint64_t number;
  std::uint64_t address;
  std::uint64_t time_ns;
  std::vector<std::uint64_t> registers;

  template <class Get>
  static std::vector<Hit> list(std::int64_t count, Get get) {
    std::vector<Hit> hits;
    for (std::int64_t i = 0; i < count; ++i) {
      tt_hit hit{};
      hit.size_bytes = sizeof hit;
      if (get(static_cast<std::size_t>(i), &hit) != 0) break;
      hits.push_back({hit.number,
                      hit.address,
                      hit.time_ns,
                      {hit.registers, hit.registers + hit.register_count}});
    }
    return hits;
  }
};

// Logs hits of places in a thread while it runs: see tt_watch_new.
class Watch {
 public:
  explicit Watch(std::int32_t tid, std::uint64_t log_bytes = 0) {
    tt_error* error = nullptr;
    watch_.reset(tt_watch_new(tid, log_bytes, &error));
    if (!watch_) throw Failure(error);
  }

  // The place's number.
  int add(const Place& place) {
    const tt_place raw = place.raw();
    tt_error* error = nullptr;
    const int number = tt_watch_add(watch_.get(), &raw, &error);
    if (number < 0) throw Failure(error);
    return number;
  }
  // The newest hits of a place, oldest first.
  std::vector<Hit> hits(int place, std::uint64_t limit = 0) {
    const std::int64_t count = read(place, limit);
    return Hit::list(count, [&](std::size_t index, tt_hit* hit) {
      return tt_watch_hit(watch_.get(), index, hit);
    });
  }
  // How many there were in all.
  std::uint64_t count(int place) {
    read(place, 1);
    return tt_watch_count(watch_.get());
  }
  bool waits(int place) const { return tt_watch_waits(watch_.get(), place) == 1; }
  bool give_way() { return tt_watch_give_way(watch_.get()) != 0; }
  void retry() { tt_watch_retry(watch_.get()); }

 private:
  struct Free {
    void operator()(tt_watch* watch) const { tt_watch_free(watch); }
  };
  std::int64_t read(int place, std::uint64_t limit) {
    tt_error* error = nullptr;
    const std::int64_t count = tt_watch_read(watch_.get(), place, limit, &error);
    if (count < 0) throw Failure(error);
    return count;
  }
  std::unique_ptr<tt_watch, Free> watch_;
};

// Waits for hits of a place: see tt_alarm_new.
class Alarm {
 public:
  Alarm(std::int32_t tid, const Place& place) {
    const tt_place raw = place.raw();
    tt_error* error = nullptr;
    alarm_.reset(tt_alarm_new(tid, &raw, &error));
    if (!alarm_) throw Failure(error);
  }

  std::vector<Hit> wait(int timeout_ms = -1) {
    tt_error* error = nullptr;
    const std::int64_t count = tt_alarm_wait(alarm_.get(), timeout_ms, &error);
    if (count < 0) throw Failure(error);
    return Hit::list(count, [&](std::size_t index, tt_hit* hit) {
      return tt_alarm_hit(alarm_.get(), index, hit);
    });
  }
  int fd() const { return tt_alarm_fd(alarm_.get()); }

 private:
  struct Free {
    void operator()(tt_alarm* alarm) const { tt_alarm_free(alarm); }
  };
  std::unique_ptr<tt_alarm, Free> alarm_;
};

// Records threads, and tells what those that stand did last: see tt_provider_new.
class Provider {
 public:
  using Options = tailtrace_api::Options;

  Provider() : Provider(Options()) {}
  explicit Provider(const Options& options) {
    tt_error* error = nullptr;
    provider_.reset(
        options.with_raw([&](const tt_options* raw) { return tt_provider_new(raw, &error); }));
    if (!provider_) throw Failure(error);
  }

  void start_thread(std::int32_t pid, std::int32_t tid) {
    check([&](tt_error** error) { return tt_start_thread(provider_.get(), pid, tid, error); });
  }
  void start_process(std::int32_t pid) {
    check([&](tt_error** error) { return tt_start_process(provider_.get(), pid, error); });
  }
  void stop_thread(std::int32_t pid, std::int32_t tid) {
    check([&](tt_error** error) { return tt_stop_thread(provider_.get(), pid, tid, error); });
  }
  void stop_process(std::int32_t pid) {
    check([&](tt_error** error) { return tt_stop_process(provider_.get(), pid, error); });
  }
  // The thread must stand.
  Snapshot snapshot(std::int32_t pid, std::int32_t tid, std::uint64_t pc = 0,
                    std::uint64_t limit = 0) {
    tt_error* error = nullptr;
    tt_snapshot* taken = tt_snapshot_thread(provider_.get(), pid, tid, pc, limit, &error);
    if (taken == nullptr) throw Failure(error);
    return Snapshot(taken);
  }
  // All recorded threads of the process, which stand.
  std::vector<Snapshot> snapshots(std::int32_t pid, std::uint64_t limit = 0) {
    tt_error* error = nullptr;
    const int count = tt_snapshot_process(provider_.get(), pid, limit, &error);
    if (count < 0) throw Failure(error);
    std::vector<Snapshot> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back(tt_provider_thread(provider_.get(), static_cast<std::size_t>(i)));
    return threads;
  }
  // What turned out otherwise than asked since the last call.
  std::vector<std::string> remarks() {
    std::vector<std::string> texts;
    while (tt_error* remark = tt_next_remark(provider_.get())) {
      texts.push_back(Failure::text_of(remark));
      tt_error_free(remark);
    }
    return texts;
  }

 private:
  struct Free {
    void operator()(tt_provider* provider) const { tt_provider_free(provider); }
  };
  template <class Call>
  void check(Call call) {
    tt_error* error = nullptr;
    if (call(&error) != 0) throw Failure(error);
  }
  std::unique_ptr<tt_provider, Free> provider_;
};

// A whole process, by CPU: see tt_process_record.
class Process {
 public:
  explicit Process(std::int32_t pid, bool children = false, const Options& options = {}) {
    tt_error* error = nullptr;
    process_.reset(options.with_raw([&](const tt_options* raw) {
      return tt_process_record(raw, pid, children ? 1 : 0, &error);
    }));
    if (!process_) throw Failure(error);
  }

  std::vector<Snapshot> snapshots(std::uint64_t limit = 0) {
    tt_error* error = nullptr;
    const int count = tt_process_snapshot(process_.get(), limit, &error);
    if (count < 0) throw Failure(error);
    std::vector<Snapshot> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back(tt_process_thread(process_.get(), static_cast<std::size_t>(i)));
    return threads;
  }

 private:
  struct Free {
    void operator()(tt_process* process) const { tt_process_free(process); }
  };
  std::unique_ptr<tt_process, Free> process_;
};

// Everything that a thread does: see tt_lossless_start.
class Lossless {
 public:
  Lossless(std::int32_t pid, std::int32_t tid, const std::string& path,
           const Options& options = {}) {
    tt_error* error = nullptr;
    lossless_.reset(options.with_raw([&](const tt_options* raw) {
      return tt_lossless_start(raw, pid, tid, path.c_str(), &error);
    }));
    if (!lossless_) throw Failure(error);
  }

  // How many bytes were moved.
  std::uint64_t drain(int timeout_ms = 0) {
    tt_error* error = nullptr;
    const std::int64_t bytes = tt_lossless_drain(lossless_.get(), timeout_ms, &error);
    if (bytes < 0) throw Failure(error);
    return static_cast<std::uint64_t>(bytes);
  }
  // That data was lost, or is about to be.
  std::optional<std::string> trouble() const {
    tt_error* error = tt_lossless_trouble(lossless_.get());
    if (error == nullptr) return std::nullopt;
    std::string text = Failure::text_of(error);
    tt_error_free(error);
    return text;
  }
  Snapshot snapshot(std::uint64_t pc = 0, std::uint64_t limit = 0) {
    tt_error* error = nullptr;
    tt_snapshot* taken = tt_lossless_snapshot(lossless_.get(), pc, limit, &error);
    if (taken == nullptr) throw Failure(error);
    return Snapshot(taken);
  }

 private:
  struct Free {
    void operator()(tt_lossless* lossless) const { tt_lossless_free(lossless); }
  };
  std::unique_ptr<tt_lossless, Free> lossless_;
};

}  // namespace tailtrace_api
