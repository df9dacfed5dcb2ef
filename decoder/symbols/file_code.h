// FileCode: the code of a process as its files have it, for tools that read it there and see no
// other.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/code/code_image.h"
#include "decoder/record/branch_record.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {

// Of the mappings of files, those that branches came from or went to, whatever the map says of
// them: a program under an emulator executes what the emulator only reads.
std::vector<Mapping> executed_files(std::span<const Mapping> mappings,
                                    std::span<const BranchRecord> records);

class FileCode {
 public:
  struct Piece {
    Mapping mapping;
    std::string build_id;  // of its file; empty: it has none
  };

  // Those of the mappings whose code was found in their files; it is added to the image.
  std::vector<Piece> add_to(CodeImage& image, std::span<const Mapping> mappings);

  // The files that could not be read.
  const std::vector<Error>& problems() const { return problems_; }

 private:
  struct File {
    std::shared_ptr<const MappedFile> whole;
    std::string build_id;
  };

  const std::optional<File>& file_at(const std::string& path);
  std::optional<File> open(const std::string& path);

  std::map<std::string, std::optional<File>> files_;
  std::vector<Error> problems_;
};

// An image with one more epoch behind those of `known`: what `now` shows, and nothing else. So
// `SynthesisOptions::newest_code` keeps what was not that from whoever sees only that.
CodeImage with_newest(const CodeImage& known, const CodeImage& now);

}  // namespace tailtrace
