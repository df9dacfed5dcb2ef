// PerfDataWriter: a perf.data file with Intel PT of threads, as `perf record --per-thread` would
// have written it: what perf, or any other program that reads such files, decodes.
//
// Perf believes a mapping from its time on. Whoever maps one thing in the place of another numbers
// moments: what has a later one comes later.
//
// Threading: one thread at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/types.h"

namespace tailtrace::perf {

// Code that a process has mapped from a file.
struct WrittenMapping {
  Address begin;
  std::uint64_t size_bytes = 0;
  std::uint64_t file_offset_bytes = 0;
  Bytes build_id;  // 20 bytes at most; empty: not known
  std::string path;

  friend bool operator==(const WrittenMapping&, const WrittenMapping&) = default;
};

// A piece of a thread's trace, which begins with a PSB; there are no times in it.
struct WrittenTrace {
  std::uint64_t moment = 0;
  Bytes bytes;
};

enum class WrittenTimes : std::uint8_t {
  kNone,     // perf decodes each thread by itself, with all mappings
  kMoments,  // made of the moments, so that perf decodes all in their order
};

class PerfDataWriter {
 public:
  // Beyond so many, times would not fit into a packet.
  static constexpr std::uint64_t kMaxMoment = 700'000;

  // `return_compression`: the traces have it.
  explicit PerfDataWriter(bool return_compression) : return_compression_(return_compression) {}

  // Of a process, before the thread that executed their code. Names and paths are cut where a
  // record cannot hold more. Moments are 1 to kMaxMoment, and never fewer than before.
  void add_mappings(std::int32_t pid, std::span<const WrittenMapping> mappings,
                    std::uint64_t moment = 1);
  // A thread with its whole trace.
  void add_thread(ThreadId thread, const std::string& name, std::vector<WrittenTrace> trace);

  // The whole file.
  Bytes finish(WrittenTimes times = WrittenTimes::kNone) const;

 private:
  // One of the kernel's.
  struct Record {
    std::uint32_t type = 0;
    std::uint16_t misc = 0;
    ThreadId thread;
    std::uint64_t time_ns = 0;
    Bytes body;
  };
  struct Thread {
    std::int32_t tid = 0;
    std::vector<WrittenTrace> trace;
  };

  static Bytes whole(const Record& record, WrittenTimes times);
  static Bytes whole(const Thread& thread, std::uint32_t queue, WrittenTimes times);
  Bytes data(WrittenTimes times) const;
  Bytes attr(WrittenTimes times) const;

  bool return_compression_;
  std::vector<Record> records_;
  std::vector<Thread> threads_;
};

}  // namespace tailtrace::perf
