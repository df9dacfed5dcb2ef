// ThreadSource: one thread of what was opened, before any of it is read.
//
// Threading: the functions may be called by any thread, one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decoder/history/snapshot.h"
#include "python/core/ring_view.h"

namespace tailtrace::python {

struct ThreadSource {
  ThreadId thread;
  std::string engine;  // that recorded it; empty: not known
  bool live = false;   // somebody may still write it

  // The records as they were recorded, in place where that is possible.
  std::function<Result<RecordSpan>()> records;
  // The same with the code, closed by a record where the thread stands.
  std::function<Result<std::shared_ptr<const ThreadSnapshot>>()> snapshot;
};

// Code that a file without any is to be read with: bytes, each at its address.
using GivenCode = std::vector<std::pair<Address, Bytes>>;

// A session's folder or a ring file. Errors: kBadInput for what is neither, kSystem, kPermission.
Result<std::vector<ThreadSource>> open_sources(const std::string& path, const GivenCode& code);

}  // namespace tailtrace::python
