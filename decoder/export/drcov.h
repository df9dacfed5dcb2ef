// drcov: the basic blocks that were executed, as DynamoRIO's tool of that name writes them (version
// 2) and the coverage painters of disassemblers read them. DRCOV.md draws the file.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "decoder/export/code_runs.h"
#include "decoder/export/sinks.h"

namespace tailtrace {

// Where a file lay in memory, from its lowest address to its highest.
struct LoadedFile {
  Address begin, end;
  std::string path;
};

class DrcovFile {
 public:
  // What was loaded in an epoch of the code, by address, apart from each other.
  using FilesIn = std::function<std::vector<LoadedFile>(Epoch)>;

  // Blocks of other memory than those files' are left out, and counted.
  // REQUIRES: a range of the history.
  void add(const History& history, Range range, const FilesIn& files_in);

  void write(const ByteSink& sink) const;

  std::uint64_t left_out() const { return left_out_; }

 private:
  using Module = std::tuple<Address, Address, std::string>;
  struct Block {
    std::uint32_t offset_bytes = 0;
    std::uint16_t size_bytes = 0;
    std::uint16_t module = 0;
    friend auto operator<=>(const Block&, const Block&) = default;
  };

  void add_block(std::span<const LoadedFile> files, Address begin, Address end);

  std::map<Module, std::uint16_t> modules_;  // and their numbers
  std::set<Block> blocks_;
  std::uint64_t left_out_ = 0;
};

}  // namespace tailtrace
