// ThreadSource: one thread of what was opened, before any of it is read.
//
// Threading: the functions may be called by any thread, one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decoder/bundle/bundle.h"
#include "decoder/history/opened_thread.h"
#include "decoder/record/ring_view.h"

namespace tailtrace::python {

struct ThreadSource {
  ThreadId thread;
  std::string engine;                         // that recorded it; empty: not known
  std::string name;                           // of a thread that is there; empty: not known
  std::shared_ptr<const BundleThread> saved;  // in a bundle of ours, which knows the name
  bool live = false;                          // somebody may still write it
  std::shared_ptr<const void> keep;           // what must not go away before the source does

  // The records as they were recorded, in place where that is possible. Empty: the history's.
  std::function<Result<RecordSpan>()> records;
  // Closed by a record where the thread stands.
  std::function<Result<OpenedThread>()> content;
};

// Code that a file without any is to be read with: bytes, each at its address.
using GivenCode = std::vector<std::pair<Address, Bytes>>;

// A session's folder, a process's folder in one, a bundle, LLDB's or ours, a record stream, a
// ring file or a perf.data file. Errors: kBadInput for what is none of these, kSystem, kPermission.
Result<std::vector<ThreadSource>> open_sources(const std::string& path, const GivenCode& code);

// The kinds of it. A process's folder is one of a session's.
Result<std::vector<ThreadSource>> open_ring(const std::string& path, const GivenCode& code);
Result<std::vector<ThreadSource>> open_session(const std::string& path);
Result<std::vector<ThreadSource>> open_bundle(const std::string& path);
// The trace.json of a bundle of LLDB's.
Result<std::vector<ThreadSource>> open_lldb_bundle(const std::string& path);

// Whether the writer of a ring may write on.
bool is_live(const Ring& ring);

}  // namespace tailtrace::python
