#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "decoder/base/bytes.h"
#include "decoder/symbols/rust_name.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxDemangled_bytes = 1 << 16;
// References may refer to what holds references itself.
constexpr int kMaxDepth = 200;
constexpr int kMaxSteps = 1 << 16;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

std::string_view basic_type(char tag) {
  switch (tag) {
    case 'a':
      return "i8";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'd':
      return "f64";
    case 'e':
      return "str";
    case 'f':
      return "f32";
    case 'h':
      return "u8";
    case 'i':
      return "isize";
    case 'j':
      return "usize";
    case 'l':
      return "i32";
    case 'm':
      return "u32";
    case 'n':
      return "i128";
    case 'o':
      return "u128";
    case 'p':
      return "_";
    case 's':
      return "i16";
    case 't':
      return "u16";
    case 'u':
      return "()";
    case 'v':
      return "...";
    case 'x':
      return "i64";
    case 'y':
      return "u64";
    case 'z':
      return "!";
    default:
      return {};
  }
}

// Reads a name and writes what it means. Once something is wrong nothing is right any more.
class V0Reader {
 public:
  explicit V0Reader(std::string_view rest) : text_(rest) {}

  std::optional<std::string> read() {
    path(InValue{true});
    // The crate that the instance was made for.
    if (!failed_ && is_upper(peek())) silently([&] { path(InValue{false}); });
    if (failed_ || at_ != text_.size()) return std::nullopt;
    return std::move(out_);
  }

 private:
  // Whether generic arguments stand behind "::".
  struct InValue {
    bool yes = false;
  };
  struct Identifier {
    std::string_view text;
    bool is_punycode = false;
    bool empty() const { return text.empty(); }
  };

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool eat(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  char next() {
    const char c = peek();
    c == '\0' ? fail() : void(++at_);
    return c;
  }
  void fail() { failed_ = true; }

  void put(std::string_view text) {
    if (failed_ || is_silent_) return;
    out_ += text;
    if (out_.size() > kMaxDemangled_bytes) fail();
  }
  template <class Read>
  void silently(Read read) {
    const bool was_silent = std::exchange(is_silent_, true);
    read();
    is_silent_ = was_silent;
  }

  // One level further down, as long as that is not too far.
  template <class Read>
  void nested(Read read) {
    if (depth_ == kMaxDepth || ++steps_ == kMaxSteps) fail();
    if (failed_) return;
    ++depth_;
    read();
    --depth_;
  }

  template <class Read>
  std::size_t list(std::string_view separator, Read read) {
    std::size_t count = 0;
    for (; !failed_ && !eat('E'); ++count) {
      if (count != 0) put(separator);
      read();
    }
    return count;
  }

  // What was read at an earlier place is read again. Such a place lies before the reference.
  template <class Read>
  void reference(Read read) {
    const std::size_t reference_at = at_ - 1;
    const std::uint64_t place = base_62();
    if (place >= reference_at) fail();
    if (failed_) return;
    const std::size_t behind = std::exchange(at_, static_cast<std::size_t>(place));
    // Silence needs no second look.
    if (!is_silent_) nested(read);
    at_ = behind;
  }

  // "_" is 0, "0_" is 1, "Z_" is 62.
  std::uint64_t base_62() {
    if (eat('_')) return 0;
    std::uint64_t value = 0;
    while (!failed_ && !eat('_')) {
      const char c = next();
      unsigned digit = 0;
      if (is_digit(c))
        digit = static_cast<unsigned>(c - '0');
      else if (is_lower(c))
        digit = static_cast<unsigned>(c - 'a') + 10;
      else if (is_upper(c))
        digit = static_cast<unsigned>(c - 'A') + 36;
      else
        fail();
      if (value > (~std::uint64_t{0} - digit) / 62 - 1) fail();
      if (!failed_) value = value * 62 + digit;
    }
    return value + 1;
  }
  std::uint64_t optional_base_62(char tag) { return eat(tag) ? base_62() + 1 : 0; }

  Identifier identifier() {
    Identifier read;
    read.is_punycode = eat('u');
    std::size_t size = 0;
    if (!is_digit(peek())) fail();
    if (!eat('0'))
      while (is_digit(peek()) && size <= text_.size())
        size = size * 10 + static_cast<std::size_t>(next() - '0');
    eat('_');  // before what begins with a digit or underscore
    if (size > text_.size() - at_) fail();
    if (failed_) return {};
    read.text = text_.substr(at_, size);
    at_ += size;
    return read;
  }
  void put(const Identifier& name) {
    if (!name.is_punycode) return put(name.text);
    std::string coded(name.text);
    if (const std::size_t last = coded.rfind('_'); last != std::string::npos) coded[last] = '-';
    put("punycode{" + coded + "}");
  }

  void path(InValue in_value) {
    nested([&] { path_here(in_value); });
  }
  void path_here(InValue in_value) {
    switch (const char tag = next()) {
      case 'C':
        optional_base_62('s');
        return put(identifier());
      case 'N':
        return nested_name(in_value);
      case 'M':
      case 'X':
        // Where the implementation lies.
        optional_base_62('s');
        silently([&] { path(InValue{false}); });
        [[fallthrough]];
      case 'Y':
        put("<");
        type();
        if (tag != 'M') {
          put(" as ");
          path(InValue{false});
        }
        return put(">");
      case 'I':
        path(in_value);
        put(in_value.yes ? "::<" : "<");
        list(", ", [&] { generic_argument(); });
        return put(">");
      case 'B':
        return reference([&] { path_here(in_value); });
      default:
        return fail();
    }
  }

  void nested_name(InValue in_value) {
    const char space = next();
    path(in_value);
    const std::uint64_t number = optional_base_62('s');
    const Identifier name = identifier();
    if (is_lower(space)) {
      if (name.empty()) return;
      put("::");
      return put(name);
    }
    if (!is_upper(space)) return fail();
    put("::{");
    space == 'C' ? put("closure") : space == 'S' ? put("shim") : put(std::string_view(&space, 1));
    if (!name.empty()) {
      put(":");
      put(name);
    }
    put(fmt::format("#{}}}", number));
  }

  void generic_argument() {
    if (eat('L')) return lifetime(base_62());
    eat('K') ? constant() : type();
  }

  // 0: erased; else how many binders' lifetimes lie between.
  void lifetime(std::uint64_t index) {
    put("'");
    if (index == 0) return put("_");
    if (index > bound_lifetimes_) return fail();
    const std::uint64_t number = bound_lifetimes_ - index;
    constexpr std::uint64_t kLetters = 26;
    if (number >= kLetters) return put(fmt::format("_{}", number));
    put(std::string(1, static_cast<char>('a' + number)));
  }

  // `for<'a, 'b> `, whose lifetimes hold in what is read.
  template <class Read>
  void bound(Read read) {
    const std::uint64_t before = bound_lifetimes_;
    const std::uint64_t count = optional_base_62('G');
    if (count > text_.size()) return fail();
    if (count != 0) put("for<");
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i != 0) put(", ");
      ++bound_lifetimes_;
      lifetime(1);
    }
    if (count != 0) put("> ");
    read();
    bound_lifetimes_ = before;
  }

  void type() {
    nested([&] { type_here(); });
  }
  void type_here() {
    const char tag = next();
    if (failed_) return;
    if (const std::string_view basic = basic_type(tag); !basic.empty()) return put(basic);
    switch (tag) {
      case 'R':
      case 'Q':
        return reference_type(tag == 'Q');
      case 'P':
        put("*const ");
        return type();
      case 'O':
        put("*mut ");
        return type();
      case 'A':
      case 'S':
        put("[");
        type();
        if (tag == 'A') {
          put("; ");
          constant();
        }
        return put("]");
      case 'T':
        put("(");
        if (list(", ", [&] { type(); }) == 1) put(",");
        return put(")");
      case 'F':
        return bound([&] { function_type(); });
      case 'D':
        return trait_object();
      case 'B':
        return reference([&] { type_here(); });
      default:
        --at_;
        return path(InValue{false});
    }
  }

  void reference_type(bool is_mutable) {
    put("&");
    if (eat('L')) {
      if (const std::uint64_t index = base_62(); index != 0) {
        lifetime(index);
        put(" ");
      }
    }
    if (is_mutable) put("mut ");
    type();
  }

  void function_type() {
    if (eat('U')) put("unsafe ");
    if (eat('K')) {
      std::string abi(eat('C') ? "C" : identifier().text);
      std::ranges::replace(abi, '_', '-');
      put("extern \"" + abi + "\" ");
    }
    put("fn(");
    list(", ", [&] { type(); });
    put(")");
    if (eat('u')) return;
    put(" -> ");
    type();
  }

  void trait_object() {
    put("dyn ");
    bound([&] { list(" + ", [&] { object_trait(); }); });
    if (!eat('L')) return fail();
    if (const std::uint64_t index = base_62(); index != 0) {
      put(" + ");
      lifetime(index);
    }
  }

  void object_trait() {
    bool is_open = path_to_be_closed();
    while (eat('p')) {
      put(is_open ? ", " : "<");
      is_open = true;
      put(identifier());
      put(" = ");
      type();
    }
    if (is_open) put(">");
  }
  // A path whose generic arguments, if it has any, may go on.
  bool path_to_be_closed() {
    bool is_open = false;
    if (eat('B')) {
      reference([&] { is_open = path_to_be_closed(); });
    } else if (eat('I')) {
      path(InValue{false});
      put("<");
      list(", ", [&] { generic_argument(); });
      is_open = true;
    } else {
      path(InValue{false});
    }
    return is_open;
  }

  void constant() {
    nested([&] { constant_here(); });
  }
  void constant_here() {
    constexpr std::string_view kSigned = "aslxni", kUnsigned = "htmyoj";
    const char tag = next();
    if (tag == 'p') return put("_");
    if (tag == 'B') return reference([&] { constant_here(); });
    if (tag == 'b') return boolean();
    if (tag == 'c') return character();
    if (kSigned.find(tag) != std::string_view::npos) {
      if (eat('n')) put("-");
    } else if (kUnsigned.find(tag) == std::string_view::npos) {
      return fail();
    }
    number();
  }

  std::string_view hex_digits() {
    const std::size_t begin = at_;
    while (is_digit(peek()) || (peek() >= 'a' && peek() <= 'f')) ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.empty() || !eat('_')) fail();
    return digits;
  }
  void number() {
    const std::string_view digits = hex_digits();
    const auto value = parse_hex(digits);
    value ? put(fmt::format("{}", *value)) : put(fmt::format("0x{}", digits));
  }
  void boolean() {
    const auto value = parse_hex(hex_digits());
    if (!value || *value > 1) return fail();
    put(*value == 1 ? "true" : "false");
  }
  void character() {
    const auto value = parse_hex(hex_digits());
    if (!value) return fail();
    constexpr std::string_view kEscaped = "\t\r\n'\\", kLetters = "trn'\\";
    const char shown = *value <= '~' ? static_cast<char>(*value) : '\0';
    if (const std::size_t at = kEscaped.find(shown); at != kEscaped.npos)
      return put(fmt::format("'\\{}'", kLetters[at]));
    shown >= ' ' ? put(fmt::format("'{}'", shown)) : put(fmt::format("'\\u{{{:x}}}'", *value));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
  bool failed_ = false, is_silent_ = false;
  int depth_ = 0, steps_ = 0;
  std::uint64_t bound_lifetimes_ = 0;
};

}  // namespace

std::optional<std::string> rust_v0_name(std::string_view name) {
  if (!name.starts_with("_R") || name.size() < 3 || !is_upper(name[2])) return std::nullopt;
  // What tools add (".llvm.1234") stands behind a dot.
  return V0Reader(name.substr(2, name.find('.') - 2)).read();
}

}  // namespace tailtrace
