// A call path as lines: the item that was asked for, and the calls that led to it.
//
// Threading: as CallHistory; a symbolizer belongs to one thread at a time.
#pragma once

#include "decoder/history/calls/call_path.h"
#include "decoder/history/history.h"
#include "decoder/history/listing.h"

namespace tailtrace {

struct PathListing {
  bool from_oldest = false;   // positions are counted from 1 instead of back from -1
  std::string_view cut_note;  // the line behind a path that goes on
};

// Innermost first. Says so when the outermost call that is known was called by what is not in the
// history, or too far back in it for calls_up_to(). REQUIRES: the path of an item of the history.
void list_path(const History& history, Symbolizer& symbols, const CallPath& path,
               std::uint64_t item, const PathListing& listing, const LineSink& sink);

// One JSON object a line for each frame that was on the stack, innermost first: where it stands or
// goes on.
//   {"pc":"0x401022","function":"Worker::step"}
// What jumped into the next inner one is on the stack no more.
void list_frames_json(const History& history, const CallPath& path, const LineSink& sink);

}  // namespace tailtrace
