#include "tests/support/pt_case.h"

#include <fmt/format.h>

#include <sstream>

#include "decoder/pt/event_text.h"
#include "decoder/pt/record_sink.h"
#include "tests/support/packet_assembler.h"

namespace tailtrace {
namespace {

std::string trimmed(std::string text) {
  const char* kSpace = " \t\r";
  text.erase(0, text.find_first_not_of(kSpace));
  text.erase(text.find_last_not_of(kSpace) + 1);
  return text;
}

// A section's head line and the lines below it, without comments.
struct Section {
  std::vector<std::string> head;
  std::size_t head_line = 0;
  std::vector<std::pair<std::size_t, std::string>> lines;
};

class CaseParser {
 public:
  Result<PtCase> parse(std::string_view text);

 private:
  void read_sections(std::string_view text);
  bool take(const Section& section);
  bool take_code(const Section& section);
  bool take_trace(const Section& section);
  bool take_setting(const Section& section);
  bool take_filter(const Section& section);
  bool wrong(std::size_t line, std::string what);

  PtCase case_;
  std::vector<Section> sections_;
  std::string error_;
};

bool CaseParser::wrong(std::size_t line, std::string what) {
  if (error_.empty()) error_ = fmt::format("line {}: {}", line, what);
  return false;
}

// Lines that begin with a space belong to the head line above them.
void CaseParser::read_sections(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with('#')) {
      case_.about += (case_.about.empty() ? "" : "\n") + trimmed(line.substr(1));
      continue;
    }
    bool indented = line.starts_with(' ') || line.starts_with('\t');
    std::string content = trimmed(line.substr(0, line.find(';')));
    if (content.empty()) continue;
    if (!indented)
      sections_.push_back({split_words(content), number, {}});
    else if (!sections_.empty())
      sections_.back().lines.emplace_back(number, content);
    else
      wrong(number, "it belongs to nothing");
  }
}

// "code ADDRESS [EPOCH]", then an instruction a line: "label: 90".
bool CaseParser::take_code(const Section& section) {
  auto at = section.head.size() > 1 ? parse_case_address(section.head[1], {}) : std::nullopt;
  if (!at) return wrong(section.head_line, "`code` needs an address");
  Epoch epoch;
  if (section.head.size() > 2) epoch = {static_cast<std::uint32_t>(std::stoul(section.head[2]))};
  Bytes bytes;
  for (const auto& [number, line] : section.lines) {
    std::size_t colon = line.find(':');
    if (colon != std::string::npos) case_.labels[line.substr(0, colon)] = *at + bytes.size();
    std::string digits;
    for (char c : line.substr(colon == std::string::npos ? 0 : colon + 1))
      if (c != ' ') digits += c;
    auto insn = from_hex(digits);
    if (!insn) return wrong(number, "it is no bytes in hexadecimal");
    bytes.insert(bytes.end(), insn->begin(), insn->end());
  }
  if (!case_.code->add(*at, std::move(bytes), epoch))
    return wrong(section.head_line, "the code does not fit there");
  return true;
}

// A packet a line; "change EPOCH": from here on the code is of another epoch.
bool CaseParser::take_trace(const Section& section) {
  PacketAssembler packets(case_.labels);
  for (const auto& [number, line] : section.lines) {
    std::vector<std::string> words = split_words(line);
    if (words.size() == 2 && words[0] == "change") {
      Epoch epoch{static_cast<std::uint32_t>(std::stoul(words[1]))};
      case_.config.code_changes.push_back({packets.size_bytes(), 0, epoch});
    } else if (std::string error = packets.add(line); !error.empty()) {
      return wrong(number, error);
    }
  }
  case_.trace = packets.take();
  return true;
}

// "filter first last", "stop first last": the next of the four address ranges.
bool CaseParser::take_filter(const Section& section) {
  auto first = parse_case_address(section.head[1], case_.labels);
  auto last = parse_case_address(section.head[2], case_.labels);
  if (!first || !last) return wrong(section.head_line, "it needs two addresses");
  for (pt::AddressFilter& filter : case_.config.filters) {
    if (filter.kind != pt::AddressFilter::Kind::kOff) continue;
    bool stops = section.head[0] == "stop";
    filter = {stops ? pt::AddressFilter::Kind::kStop : pt::AddressFilter::Kind::kFilter, *first,
              *last};
    return true;
  }
  return wrong(section.head_line, "there are only four ranges");
}

bool CaseParser::take_setting(const Section& section) {
  const auto& head = section.head;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (head[0] == "cpu" && head.size() == 2 &&
      std::sscanf(head[1].c_str(), "%u/%u/%u", &a, &b, &c) == 3) {
    case_.config.cpu = {static_cast<std::uint16_t>(a), static_cast<std::uint8_t>(b),
                        static_cast<std::uint8_t>(c)};
    case_.config.errata = pt::errata_of(case_.config.cpu);
    return true;
  }
  if (head[0] == "clocks" && head.size() == 4 &&
      std::sscanf((head[1] + " " + head[2] + " " + head[3]).c_str(), "%u/%u %u %u", &a, &b, &c,
                  &d) == 4) {
    case_.config.timing = {a, b, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(d)};
    return true;
  }
  if (head[0] == "resume" && head.size() == 2 && head[1] == "address") {
    case_.config.resumption = pt::Resumption::kAtAddress;
    return true;
  }
  if (head[0] == "print" && head.size() == 2 && head[1] == "records") {
    case_.prints_records = true;
    return true;
  }
  if ((head[0] == "filter" || head[0] == "stop") && head.size() == 3) return take_filter(section);
  return wrong(section.head_line, "it is no section and no setting");
}

bool CaseParser::take(const Section& section) {
  const std::string& name = section.head[0];
  if (name == "code") return take_code(section);
  if (name == "trace") return take_trace(section);
  if (name != "expect") return take_setting(section);
  std::vector<std::string>& lines = case_.expected[section.head.size() > 1 ? section.head[1] : ""];
  for (const auto& [number, line] : section.lines) lines.push_back(line);
  return true;
}

Result<PtCase> CaseParser::parse(std::string_view text) {
  case_.config.resumption = pt::Resumption::kAtPsb;  // libipt knows no other
  read_sections(text);
  for (const Section& section : sections_)
    if (!take(section)) break;
  if (error_.empty() && case_.about.empty()) error_ = "it does not say what it is about";
  if (error_.empty() && case_.expected.empty()) error_ = "it expects nothing";
  if (!error_.empty()) return fail(ErrorCode::kBadInput, "cannot use the case", error_);
  return std::move(case_);
}

// Writes items as the expectations have them.
class CaseSink final : public pt::Sink {
 public:
  explicit CaseSink(const PtCase& test) : test_(test) {
    for (const auto& [label, address] : test.labels) names_[address] = label;
  }

  void instructions(std::span<const Instruction> run, const pt::RunState& state) override {
    if (test_.prints_records) return records_.instructions(run, state);
    for (const Instruction& insn : run)
      lines_.push_back((state.in_transaction ? "? " : "") + name(insn.address));
  }

  pt::Detail detail() const override {
    return test_.prints_records ? pt::Detail::kBranches : pt::Detail::kInstructions;
  }
  void branches(const pt::BranchRun& run) override { records_.branches(run); }

  void event(const pt::Event& event) override {
    if (test_.prints_records) return records_.event(event);
    std::string text = text_.of(event);
    if (!text.empty()) lines_.push_back(text);
  }

  void gap(const pt::Gap& gap) override {
    if (test_.prints_records) return records_.gap(gap);
    std::string_view why = pt::error_text(gap.error);
    lines_.push_back(gap.ip.is_null() ? fmt::format("[error: {}]", why)
                                      : fmt::format("[error at {}: {}]", name(gap.ip), why));
  }

  std::vector<std::string> take() {
    if (!test_.prints_records) return std::move(lines_);
    records_.finish();
    for (const BranchRecord& record : records_.drain())
      lines_.push_back(fmt::format("{} {} -> {} insns={} time={:x}{}", kind_name(record.kind),
                                   name(record.from), name(record.to), record.insns, record.time,
                                   record.is_async() ? " async" : ""));
    return std::move(lines_);
  }

 private:
  std::string name(Address address) const {
    auto found = names_.find(address);
    return found != names_.end() ? found->second : fmt::format("{:x}", address.value);
  }

  const PtCase& test_;
  std::map<Address, std::string> names_;
  pt::EventText text_;
  pt::RecordSink records_;
  std::vector<std::string> lines_;
};

}  // namespace

const std::vector<std::string>* PtCase::expected_of(std::string_view decoder) const {
  auto own = expected.find(std::string(decoder));
  auto both = expected.find("");
  if (own != expected.end()) return &own->second;
  return both != expected.end() ? &both->second : nullptr;
}

Result<PtCase> parse_pt_case(std::string_view text) { return CaseParser().parse(text); }

std::vector<std::string> run_pt_case(const PtCase& test, pt::Decoder& decoder) {
  CaseSink sink(test);
  decoder.decode(test.trace, sink);
  return sink.take();
}

}  // namespace tailtrace
