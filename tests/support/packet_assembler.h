// PacketAssembler: PT packets out of one line of text each, as the case files have them.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "decoder/base/types.h"
#include "decoder/pt/packets/packet_writer.h"

namespace tailtrace {

// What stands between blanks.
std::vector<std::string> split_words(const std::string& line);

class PacketAssembler {
 public:
  explicit PacketAssembler(const std::map<std::string, Address>& labels) : labels_(labels) {}

  // An empty text when the line was a packet, else what is wrong with it.
  std::string add(const std::string& line);

  Bytes take() { return out_.take(); }
  // Of the packets so far.
  std::size_t size_bytes() {
    out_.flush();
    return out_.size_bytes();
  }

 private:
  using Words = std::vector<std::string>;

  bool add_plain(const Words& words);
  bool add_branch(const Words& words);
  bool add_address(const Words& words);
  bool add_mode(const Words& words);
  bool add_time(const Words& words);
  bool add_power(const Words& words);
  bool add_event(const Words& words);
  bool add_raw(const Words& words);
  std::uint64_t number(const Words& words, std::size_t index);
  bool flag(const Words& words, const char* name) const;

  const std::map<std::string, Address>& labels_;
  pt::PacketWriter out_;
  std::string error_;
};

// A label's address, or a number in hexadecimal. Nothing when it is neither.
std::optional<Address> parse_case_address(const std::string& word,
                                          const std::map<std::string, Address>& labels);

}  // namespace tailtrace
