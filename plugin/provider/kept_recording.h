// KeptRecording: what `--keep` leaves behind of engines whose rings go away with the server: a
// bundle (decoder/bundle/BUNDLE.md) with the histories as they were when their threads, or the
// server, came to their end.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <string>

#include "decoder/bundle/bundle.h"

namespace tailtrace {

class KeptRecording {
 public:
  // Errors: as BundleWriter::create.
  static Result<KeptRecording> create(const std::string& path);

  // Remembers what the process has mapped: at its end nobody knows any more.
  void note_process(std::int32_t pid);
  // The history of a thread; without a name the thread is still there, and is asked for it.
  // What fails is told by finish().
  void add(const ThreadSnapshot& snapshot, std::string name = {});
  // Whether no thread has been added.
  bool is_empty() const { return empty_; }
  // The bundle is at its place; without a thread there is none. Errors: as BundleWriter::add and
  // BundleWriter::finish, the first one.
  Result<void> finish();
  // As BundleWriter's.
  std::vector<Error> remarks() const { return writer_.remarks(); }
  std::string told() const { return writer_.told(); }

 private:
  explicit KeptRecording(BundleWriter writer) : writer_(std::move(writer)) {}

  BundleWriter writer_;
  std::map<std::int32_t, std::string> maps_;
  BundleAbout about_;  // what the threads are called
  bool empty_ = true;
  Result<void> failed_;
};

}  // namespace tailtrace
