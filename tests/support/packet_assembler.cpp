#include "tests/support/packet_assembler.h"

#include <algorithm>
#include <sstream>

namespace tailtrace {
namespace {

const std::map<std::string, pt::IpPacket> kIpPackets = {{"tip", pt::IpPacket::kTip},
                                                        {"tip.pge", pt::IpPacket::kPge},
                                                        {"tip.pgd", pt::IpPacket::kPgd},
                                                        {"fup", pt::IpPacket::kFup}};
const std::map<std::string, pt::IpBytes> kIpBytes = {{"update16", pt::IpBytes::kUpdate16},
                                                     {"update32", pt::IpBytes::kUpdate32},
                                                     {"sext48", pt::IpBytes::kSignExtended48},
                                                     {"update48", pt::IpBytes::kUpdate48},
                                                     {"full", pt::IpBytes::kFull}};

}  // namespace

std::vector<std::string> split_words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::optional<Address> parse_case_address(const std::string& word,
                                          const std::map<std::string, Address>& labels) {
  if (auto label = labels.find(word); label != labels.end()) return label->second;
  std::size_t plus = word.find('+');
  if (plus != std::string::npos) {
    auto base = parse_case_address(word.substr(0, plus), labels);
    auto more = parse_hex(word.substr(plus + 1));
    if (base && more) return *base + *more;
  }
  auto value = parse_hex(word.starts_with("0x") ? word.substr(2) : word);
  if (!value) return std::nullopt;
  return Address{*value};
}

std::string PacketAssembler::add(const std::string& line) {
  error_.clear();
  Words words = split_words(line);
  bool known = add_plain(words) || add_branch(words) || add_address(words) || add_mode(words) ||
               add_time(words) || add_power(words) || add_event(words) || add_raw(words);
  if (!known && error_.empty()) error_ = "`" + words.front() + "` is no packet";
  return error_;
}

// Numbers are hexadecimal.
std::uint64_t PacketAssembler::number(const Words& words, std::size_t index) {
  if (index < words.size())
    if (auto address = parse_case_address(words[index], labels_)) return address->value;
  if (error_.empty()) error_ = "`" + words.front() + "` needs a number";
  return 0;
}

bool PacketAssembler::flag(const Words& words, const char* name) const {
  return std::find(words.begin(), words.end(), name) != words.end();
}

bool PacketAssembler::add_plain(const Words& words) {
  const std::string& name = words.front();
  if (name == "psb")
    out_.psb();
  else if (name == "psbend")
    out_.psbend();
  else if (name == "pad")
    for (std::uint64_t n = words.size() > 1 ? number(words, 1) : 1; n != 0; --n) out_.raw(Bytes{0});
  else if (name == "ovf")
    out_.ovf();
  else if (name == "stop")
    out_.trace_stop();
  else if (name == "mnt")
    out_.mnt(number(words, 1));
  else
    return false;
  return true;
}

// "tnt !.!": taken is !, the oldest comes first. More than six, or "tnt64", is the long form.
bool PacketAssembler::add_branch(const Words& words) {
  if ((words.front() != "tnt" && words.front() != "tnt64") || words.size() != 2) return false;
  const std::string& outcomes = words[1];
  if (outcomes.find_first_not_of("!.") != std::string::npos || outcomes.size() > 47) {
    error_ = "outcomes are ! and ., at most 47";
    return false;
  }
  if (words.front() == "tnt" && outcomes.size() <= pt::PacketWriter::kShortTnt) {
    out_.tnt_limit = pt::PacketWriter::kShortTnt + 1;
    for (char outcome : outcomes) out_.tnt(outcome == '!');
    out_.flush();
    return true;
  }
  std::uint64_t payload = 1;
  for (char outcome : outcomes) payload = (payload << 1) | (outcome == '!' ? 1u : 0u);
  Bytes bytes = {0x02, 0xa3};
  for (int i = 0; i < 6; ++i) bytes.push_back(static_cast<std::uint8_t>(payload >> (8 * i)));
  out_.raw(bytes);
  return true;
}

// "fup ADDRESS [COMPRESSION]", "tip.pgd none".
bool PacketAssembler::add_address(const Words& words) {
  auto packet = kIpPackets.find(words.front());
  if (packet == kIpPackets.end()) return false;
  if (words.size() == 2 && words[1] == "none") {
    out_.ip_packet(packet->second, pt::IpBytes::kSuppressed, {});
    return true;
  }
  Address ip{number(words, 1)};
  if (words.size() < 3) {
    out_.ip_packet(packet->second, ip);
    return true;
  }
  auto bytes = kIpBytes.find(words[2]);
  if (bytes == kIpBytes.end()) {
    error_ = "`" + words[2] + "` is no compression";
    return false;
  }
  out_.ip_packet(packet->second, bytes->second, ip);
  return true;
}

// "mode exec 64 [if]", "mode tsx begin|commit|abort", "pip CR3 [nr]", "vmcs BASE".
bool PacketAssembler::add_mode(const Words& words) {
  const std::string& name = words.front();
  if (name == "pip") {
    out_.pip(number(words, 1), flag(words, "nr"));
    return true;
  }
  if (name == "vmcs") {
    out_.vmcs(number(words, 1));
    return true;
  }
  if (name != "mode" || words.size() < 3) return false;
  if (words[1] == "exec") {
    CodeMode mode = words[2] == "64"   ? CodeMode::k64
                    : words[2] == "32" ? CodeMode::k32
                                       : CodeMode::k16;
    out_.mode_exec(mode, flag(words, "if"));
  } else if (words[1] == "tsx") {
    out_.mode_tsx(words[2] == "begin", words[2] == "abort");
  } else {
    error_ = "`" + words[1] + "` is no mode";
    return false;
  }
  return true;
}

bool PacketAssembler::add_time(const Words& words) {
  const std::string& name = words.front();
  if (name == "tsc")
    out_.tsc(number(words, 1));
  else if (name == "tma")
    out_.tma(static_cast<std::uint16_t>(number(words, 1)),
             static_cast<std::uint16_t>(number(words, 2)));
  else if (name == "mtc")
    out_.mtc(static_cast<std::uint8_t>(number(words, 1)));
  else if (name == "cyc")
    out_.cyc(number(words, 1));
  else if (name == "cbr")
    out_.cbr(static_cast<std::uint8_t>(number(words, 1)));
  else
    return false;
  return true;
}

// "exstop [ip]", "mwait HINTS EXTENSIONS", "pwre STATE SUB [hw]", "pwrx LAST DEEPEST [int st hw]".
bool PacketAssembler::add_power(const Words& words) {
  const std::string& name = words.front();
  auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(number(words, index)); };
  if (name == "exstop")
    out_.exstop(flag(words, "ip"));
  else if (name == "mwait")
    out_.mwait(static_cast<std::uint32_t>(number(words, 1)),
               static_cast<std::uint32_t>(number(words, 2)));
  else if (name == "pwre")
    out_.pwre(byte(1), byte(2), flag(words, "hw"));
  else if (name == "pwrx")
    out_.pwrx(byte(1), byte(2),
              static_cast<std::uint8_t>((flag(words, "int") ? 1 : 0) | (flag(words, "st") ? 4 : 0) |
                                        (flag(words, "hw") ? 8 : 0)));
  else
    return false;
  return true;
}

// "ptw4 VALUE [ip]", "ptw8 VALUE [ip]", "cfe TYPE VECTOR [ip]", "evd TYPE VALUE", "bbp TYPE 4|8",
// "bip ID VALUE 4|8", "bep [ip]".
bool PacketAssembler::add_event(const Words& words) {
  const std::string& name = words.front();
  auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(number(words, index)); };
  if (name == "ptw4" || name == "ptw8")
    out_.ptw(number(words, 1), name == "ptw8", flag(words, "ip"));
  else if (name == "cfe")
    out_.cfe(byte(1), byte(2), flag(words, "ip"));
  else if (name == "evd")
    out_.evd(byte(1), number(words, 2));
  else if (name == "bbp")
    out_.bbp(byte(1), number(words, 2) == 4);
  else if (name == "bip")
    out_.bip(byte(1), number(words, 2), number(words, 3) == 4);
  else if (name == "bep")
    out_.bep(flag(words, "ip"));
  else
    return false;
  return true;
}

// "raw 02 83": bytes as they are.
bool PacketAssembler::add_raw(const Words& words) {
  if (words.front() != "raw") return false;
  std::string digits;
  for (std::size_t i = 1; i < words.size(); ++i) digits += words[i];
  auto bytes = from_hex(digits);
  if (!bytes) {
    error_ = "`raw` needs bytes in hexadecimal";
    return false;
  }
  out_.flush();
  out_.raw(*bytes);
  return true;
}

}  // namespace tailtrace
