// PerfDataWriter: a perf.data file with Intel PT of threads, as `perf record --per-thread` would
// have written it: what perf, or any other program that reads such files, decodes.
//
// Threading: one thread at a time.
#pragma once

#include <span>
#include <string>

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
};

class PerfDataWriter {
 public:
  // `return_compression`: the traces have it.
  explicit PerfDataWriter(bool return_compression);

  // Of a process, before the thread that executed their code. Names and paths are cut where a
  // record cannot hold more.
  void add_mappings(std::int32_t pid, std::span<const WrittenMapping> mappings);
  // A thread with its whole trace.
  void add_thread(ThreadId thread, const std::string& name, ByteSpan trace);

  // The whole file.
  Bytes finish() const;

 private:
  void put_record(std::uint32_t type, std::uint16_t misc, Bytes body, ThreadId thread);
  Bytes attr() const;

  bool return_compression_;
  std::uint32_t queues_ = 0;
  Bytes data_;
};

}  // namespace tailtrace::perf
