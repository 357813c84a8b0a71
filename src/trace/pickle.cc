#include "trace/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace keel::trace {

namespace {

using Kind = Value::Kind;
using Id = DocumentBuilder::Id;

// The instructions, by their bytes.
enum Op : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kFloatText = 'F',
  kIntText = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLongText = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicodeText = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kGetText = 'g',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kPutText = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinFloat = 'G',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// What the refused ones are called, for the message.
std::string_view RefusedName(unsigned char op) {
  switch (op) {
    case 'c':
      return "GLOBAL";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x81:
      return "NEWOBJ";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 0x8f:
      return "EMPTY_SET";
    case 0x90:
      return "ADDITEMS";
    case 0x91:
      return "FROZENSET";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x93:
      return "STACK_GLOBAL";
    case 0x96:
      return "BYTEARRAY8";
    case 0x97:
      return "NEXT_BUFFER";
    case 0x98:
      return "READONLY_BUFFER";
    default:
      return "";
  }
}

// Deeper than any data is, and shallow enough that marks take no memory to speak of.
constexpr std::size_t kMaxDepth = 1000;

// Runs the instructions. Every one makes at most one value or moves at most what it finds on the
// stack, so the work is linear in the bytes.
class PickleMachine {
 public:
  PickleMachine(DocumentBuilder& builder, Bytes limit) : builder_(builder), limit_(limit) {}

  Result<Id> Run() {
    for (;;) {
      start_ = at_;
      unsigned char op = 0;
      KEEL_TRY(ReadByte(op));
      if (op == kStop) break;
      KEEL_TRY(Execute(op));
      if (builder_.Exceeds(limit_, (stack_.size() + memo_.size()) * sizeof(Id))) {
        return OutOfRange(fmt::format(
            "pickle, byte {}: the values take more than {}; allow more if you trust the file",
            start_, ToString(limit_)));
      }
    }
    if (!marks_.empty() || stack_.size() != 1) {
      return Broken(fmt::format("the pickle ends with {} values on its stack", stack_.size()));
    }
    return stack_.back();
  }

 private:
  Status Broken(std::string_view what) const {
    return InvalidArgument(fmt::format("pickle, byte {}: {}", start_, what));
  }

  std::string_view file() const { return builder_.text(); }

  // --- Reading -----------------------------------------------------------------------------------

  Status ReadByte(unsigned char& byte) {
    std::string_view one;
    KEEL_TRY(ReadBytes(1, one));
    byte = static_cast<unsigned char>(one[0]);
    return OkStatus();
  }

  Status ReadBytes(std::uint64_t count, std::string_view& bytes) {
    const std::size_t left = file().size() - at_;
    if (count > left) {
      return Broken(fmt::format("{} bytes are wanted and {} are left", count, left));
    }
    bytes = file().substr(at_, count);
    at_ += count;
    return OkStatus();
  }

  // A little-endian number of `width` bytes.
  Status ReadNumber(std::size_t width, std::uint64_t& number) {
    std::string_view bytes;
    KEEL_TRY(ReadBytes(width, bytes));
    number = 0;
    for (std::size_t i = width; i-- > 0;) {
      number = number << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return OkStatus();
  }

  // Bytes behind their own count of `width` bytes.
  Status ReadCounted(std::size_t width, std::string_view& bytes) {
    std::uint64_t count = 0;
    KEEL_TRY(ReadNumber(width, count));
    return ReadBytes(count, bytes);
  }

  Status ReadLine(std::string_view& line) {
    const std::size_t end = file().find('\n', at_);
    if (end == std::string_view::npos) return Broken("a line does not end");
    line = file().substr(at_, end - at_);
    at_ = end + 1;
    return OkStatus();
  }

  template <class Number>
  Status ParseLine(Number& number, std::string_view suffix = "") {
    std::string_view line;
    KEEL_TRY(ReadLine(line));
    if (line.ends_with(suffix)) line.remove_suffix(suffix.size());
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc() || end != line.data() + line.size()) {
      return Broken(fmt::format("'{}' is not a number that fits", line.substr(0, 40)));
    }
    return OkStatus();
  }

  // --- Making values -----------------------------------------------------------------------------

  Status Push(Id id) {
    stack_.push_back(id);
    return OkStatus();
  }

  // `text` lies in the file.
  Status PushText(Kind kind, std::string_view text) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
      return Broken("a string is longer than 4 GiB");
    }
    return Push(builder_.AddString(kind, static_cast<std::uint64_t>(text.data() - file().data()),
                                   static_cast<std::uint32_t>(text.size())));
  }

  Status PushContainer(Kind kind, std::span<const Id> items) {
    return Push(builder_.AddContainer(kind, items, start_));
  }

  // Two's complement, little-endian, of any length that fits in 64 bits.
  Status PushLong(std::string_view bytes) {
    std::uint64_t number = 0;
    const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
    const unsigned char filler = negative ? 0xff : 0;
    for (std::size_t i = bytes.size(); i-- > 0;) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      if (i >= 8) {
        if (byte != filler) return Broken("an integer does not fit in 64 bits");
        continue;
      }
      number |= static_cast<std::uint64_t>(byte) << (8 * i);
    }
    for (std::size_t i = bytes.size(); i < 8; ++i) {
      number |= static_cast<std::uint64_t>(filler) << (8 * i);
    }
    if (!negative) return Push(builder_.AddUnsigned(number));
    const auto integer = static_cast<std::int64_t>(number);
    if (integer >= 0) return Broken("an integer does not fit in 64 bits");
    return Push(builder_.AddInt(integer));
  }

  // --- The stack ---------------------------------------------------------------------------------

  // How many values lie on the stack above the last mark: no instruction reaches below that.
  std::size_t Available() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  Status Need(std::size_t count) const {
    if (Available() >= count) return OkStatus();
    return Broken(fmt::format("{} values are wanted and {} are on the stack", count, Available()));
  }

  // The values above the last mark, which is removed; they stay until Drop.
  Status TakeMark(std::size_t& first) {
    if (marks_.empty()) return Broken("there is no mark");
    first = marks_.back();
    marks_.pop_back();
    return OkStatus();
  }

  std::span<const Id> From(std::size_t first) const { return std::span(stack_).subspan(first); }

  // Replaces the values from `first` on by a container of them.
  Status Gather(Kind kind, std::size_t first) {
    if (kind == Kind::kDict && (stack_.size() - first) % 2 != 0) {
      return Broken("a dict has a key without a value");
    }
    const Id id = builder_.AddContainer(kind, From(first), start_);
    stack_.resize(first);
    return Push(id);
  }

  // Adds the values from `first` on to the container just below them, and drops them.
  Status Extend(Kind kind, std::size_t first) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (first <= floor || first > stack_.size()) return Broken("there is nothing to add to");
    if (builder_.kind(stack_[first - 1]) != kind) {
      return Broken(kind == Kind::kList ? "what is added to is no list"
                                        : "what is added to is no dict");
    }
    if (kind == Kind::kDict && (stack_.size() - first) % 2 != 0) {
      return Broken("a dict has a key without a value");
    }
    builder_.Extend(stack_[first - 1], From(first));
    stack_.resize(first);
    return OkStatus();
  }

  // --- The memo ----------------------------------------------------------------------------------

  Status Store(std::uint64_t index) {
    KEEL_TRY(Need(1));
    // Python numbers its entries from 0 upwards: a number beyond what the bytes could have made is
    // a mistake, or wants to make us allocate.
    if (index >= file().size()) return Broken(fmt::format("memo entry {} is out of range", index));
    if (index >= memo_.size()) memo_.resize(index + 1, kUnset);
    memo_[index] = stack_.back();
    return OkStatus();
  }

  Status Recall(std::uint64_t index) {
    if (index >= memo_.size() || memo_[index] == kUnset) {
      return Broken(fmt::format("there is no memo entry {}", index));
    }
    stack_.push_back(memo_[index]);
    return OkStatus();
  }

  // --- The instructions --------------------------------------------------------------------------

  Status Execute(unsigned char op) {
    std::uint64_t number = 0;
    std::string_view text;
    std::size_t first = 0;
    switch (op) {
      case kProto: {
        unsigned char protocol = 0;
        KEEL_TRY(ReadByte(protocol));
        if (protocol <= 5) return OkStatus();
        return Broken(fmt::format("protocol {} is not known", protocol));
      }
      case kFrame:  // only says how much follows
        return ReadNumber(8, number);

      case kNone:
        return Push(builder_.AddNone());
      case kNewTrue:
        return Push(builder_.AddBool(true));
      case kNewFalse:
        return Push(builder_.AddBool(false));
      case kBinInt:
        KEEL_TRY(ReadNumber(4, number));
        return Push(builder_.AddInt(static_cast<std::int32_t>(number)));
      case kBinInt1:
        KEEL_TRY(ReadNumber(1, number));
        return Push(builder_.AddUnsigned(number));
      case kBinInt2:
        KEEL_TRY(ReadNumber(2, number));
        return Push(builder_.AddUnsigned(number));
      case kLong1:
        KEEL_TRY(ReadCounted(1, text));
        return PushLong(text);
      case kLong4:
        KEEL_TRY(ReadCounted(4, text));
        return PushLong(text);
      case kIntText:
        return ExecuteIntText("");
      case kLongText:
        return ExecuteIntText("L");
      case kBinFloat: {
        KEEL_TRY(ReadNumber(8, number));
        return Push(builder_.AddFloat(
            std::bit_cast<double>(__builtin_bswap64(number))));  // it is big-endian
      }
      case kFloatText: {
        double real = 0;
        KEEL_TRY(ParseLine(real));
        return Push(builder_.AddFloat(real));
      }

      case kShortBinUnicode:
        KEEL_TRY(ReadCounted(1, text));
        return PushText(Kind::kString, text);
      case kBinUnicode:
        KEEL_TRY(ReadCounted(4, text));
        return PushText(Kind::kString, text);
      case kBinUnicode8:
        KEEL_TRY(ReadCounted(8, text));
        return PushText(Kind::kString, text);
      case kUnicodeText:
        KEEL_TRY(ReadLine(text));
        // Escapes and letters beyond ASCII would need a copy, and nobody writes this any more.
        if (std::any_of(text.begin(), text.end(), [](char c) { return c == '\\' || c < 0; })) {
          return Broken("a string with escapes; write the file with protocol 2 or later");
        }
        return PushText(Kind::kString, text);
      case kShortBinString:
      case kShortBinBytes:
        KEEL_TRY(ReadCounted(1, text));
        return PushText(Kind::kBytes, text);
      case kBinString:
      case kBinBytes:
        KEEL_TRY(ReadCounted(4, text));
        return PushText(Kind::kBytes, text);
      case kBinBytes8:
        KEEL_TRY(ReadCounted(8, text));
        return PushText(Kind::kBytes, text);

      case kMark:
        if (marks_.size() >= kMaxDepth) return Broken("the values are nested too deeply");
        marks_.push_back(stack_.size());
        return OkStatus();
      case kPop:
        if (Available() == 0 && !marks_.empty()) {
          marks_.pop_back();
          return OkStatus();
        }
        KEEL_TRY(Need(1));
        stack_.pop_back();
        return OkStatus();
      case kPopMark:
        KEEL_TRY(TakeMark(first));
        stack_.resize(first);
        return OkStatus();
      case kDup:
        KEEL_TRY(Need(1));
        stack_.push_back(stack_.back());
        return OkStatus();

      case kEmptyList:
        return PushContainer(Kind::kList, {});
      case kEmptyTuple:
        return PushContainer(Kind::kTuple, {});
      case kEmptyDict:
        return PushContainer(Kind::kDict, {});
      case kList:
        KEEL_TRY(TakeMark(first));
        return Gather(Kind::kList, first);
      case kTuple:
        KEEL_TRY(TakeMark(first));
        return Gather(Kind::kTuple, first);
      case kDict:
        KEEL_TRY(TakeMark(first));
        return Gather(Kind::kDict, first);
      case kTuple1:
      case kTuple2:
      case kTuple3: {
        const std::size_t count = op - kTuple1 + 1u;
        KEEL_TRY(Need(count));
        return Gather(Kind::kTuple, stack_.size() - count);
      }
      case kAppend:
        KEEL_TRY(Need(2));
        return Extend(Kind::kList, stack_.size() - 1);
      case kAppends:
        KEEL_TRY(TakeMark(first));
        return Extend(Kind::kList, first);
      case kSetItem:
        KEEL_TRY(Need(3));
        return Extend(Kind::kDict, stack_.size() - 2);
      case kSetItems:
        KEEL_TRY(TakeMark(first));
        return Extend(Kind::kDict, first);

      case kMemoize:
        return Store(memo_.size());
      case kBinPut:
        KEEL_TRY(ReadNumber(1, number));
        return Store(number);
      case kLongBinPut:
        KEEL_TRY(ReadNumber(4, number));
        return Store(number);
      case kPutText:
        KEEL_TRY(ParseLine(number));
        return Store(number);
      case kBinGet:
        KEEL_TRY(ReadNumber(1, number));
        return Recall(number);
      case kLongBinGet:
        KEEL_TRY(ReadNumber(4, number));
        return Recall(number);
      case kGetText:
        KEEL_TRY(ParseLine(number));
        return Recall(number);

      default: {
        const std::string_view name = RefusedName(op);
        if (name.empty()) return Broken(fmt::format("{:#04x} is no instruction", op));
        return Broken(fmt::format("{} makes more than plain values, and is refused", name));
      }
    }
  }

  Status ExecuteIntText(std::string_view suffix) {
    // Protocol 0 writes booleans as the integers 00 and 01.
    const std::string_view start = file().substr(at_, 3);
    const bool boolean = start == "00\n" || start == "01\n";
    if (start.starts_with('-')) {
      std::int64_t integer = 0;
      KEEL_TRY(ParseLine(integer, suffix));
      return Push(builder_.AddInt(integer));
    }
    std::uint64_t integer = 0;
    KEEL_TRY(ParseLine(integer, suffix));
    return Push(boolean ? builder_.AddBool(integer != 0) : builder_.AddUnsigned(integer));
  }

  static constexpr Id kUnset = std::numeric_limits<Id>::max();

  DocumentBuilder& builder_;
  const Bytes limit_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;  // of the instruction that is being carried out
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Id> memo_;
};

}  // namespace

Result<Document> ParsePickle(std::string bytes, Bytes limit) {
  DocumentBuilder builder(std::move(bytes));
  KEEL_ASSIGN(const Id root, PickleMachine(builder, limit).Run());
  return std::move(builder).Finish(root);
}

}  // namespace keel::trace
