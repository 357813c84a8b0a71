#include "trace/compressed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "keel/base/unique_fd.h"

#ifdef KEEL_HAVE_LZMA
#include <lzma.h>
#endif

namespace keel::trace {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::size_t kStep = 1 << 20;
constexpr std::string_view kGzipMagic = "\x1f\x8b"sv;
constexpr std::string_view kXzMagic = "\xfd\x37zXZ\0"sv;

Status TooLarge(Bytes limit) {
  return OutOfRange(
      fmt::format("it unpacks to more than {}; allow more if you trust the file", ToString(limit)));
}

Status Damaged(std::string_view format, std::size_t offset) {
  return InvalidArgument(fmt::format("the {} data is broken or cut near byte {}", format, offset));
}

// Room for the next piece, of kStep bytes, or fewer and at least one if the limit is near: so that
// one byte too many is seen, and what is exactly as long as the limit ends.
void Grow(std::string& out, Bytes limit) {
  const std::uint64_t left = limit.count() - out.size();
  out.resize(out.size() + static_cast<std::size_t>(left < kStep ? left + 1 : kStep));
}

Result<std::string> UnpackGzip(const std::string& packed, Bytes limit) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return ResourceExhausted("starting zlib");
  const auto unpack = [&]() -> Result<std::string> {
    std::string out;
    std::size_t fed = 0;
    for (;;) {
      if (stream.avail_in == 0 && fed < packed.size()) {
        const std::size_t piece = std::min(kStep, packed.size() - fed);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + fed));
        stream.avail_in = static_cast<uInt>(piece);
        fed += piece;
      }
      const std::size_t before = out.size();
      Grow(out, limit);
      stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
      stream.avail_out = static_cast<uInt>(out.size() - before);
      const int code = inflate(&stream, Z_NO_FLUSH);
      out.resize(out.size() - stream.avail_out);
      if (out.size() > limit.count()) return TooLarge(limit);
      const std::size_t at = fed - stream.avail_in;
      if (code == Z_STREAM_END) {
        // Parallel packers write one piece after the other, and tapes pad with zeros.
        const std::string_view rest = std::string_view(packed).substr(at);
        if (rest.find_first_not_of('\0') == std::string_view::npos) return out;
        if (!rest.starts_with(kGzipMagic) || inflateReset(&stream) != Z_OK) {
          return Damaged("gzip", at);
        }
        continue;
      }
      const bool starved = out.size() == before && stream.avail_in == 0 && fed == packed.size();
      if (code != Z_OK || starved) return Damaged("gzip", at);
    }
  };
  Result<std::string> out = unpack();
  inflateEnd(&stream);
  return out;
}

#ifdef KEEL_HAVE_LZMA
Result<std::string> UnpackXz(const std::string& packed, Bytes limit) {
  lzma_stream stream = LZMA_STREAM_INIT;
  // So much memory a decoder may use; what is written at the highest setting needs 65 MiB.
  constexpr std::uint64_t kDecoderMemory = 512u << 20;
  if (lzma_stream_decoder(&stream, kDecoderMemory, LZMA_CONCATENATED) != LZMA_OK) {
    return ResourceExhausted("starting liblzma");
  }
  const auto unpack = [&]() -> Result<std::string> {
    std::string out;
    stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
    stream.avail_in = packed.size();
    for (;;) {
      const std::size_t before = out.size();
      Grow(out, limit);
      stream.next_out = reinterpret_cast<std::uint8_t*>(out.data() + before);
      stream.avail_out = out.size() - before;
      const lzma_ret code = lzma_code(&stream, LZMA_FINISH);
      out.resize(out.size() - stream.avail_out);
      if (out.size() > limit.count()) return TooLarge(limit);
      if (code == LZMA_STREAM_END) return out;
      if (code != LZMA_OK) return Damaged("xz", packed.size() - stream.avail_in);
    }
  };
  Result<std::string> out = unpack();
  lzma_end(&stream);
  return out;
}
#else
Result<std::string> UnpackXz(const std::string&, Bytes) {
  return Unimplemented("it is xz, and Keel was built without liblzma; unpack it first");
}
#endif

}  // namespace

Result<std::string> ReadWholeFile(const std::string& path, Bytes limit) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(fmt::format("opening '{}'", path), errno);
  std::string bytes;
  for (;;) {
    const std::size_t before = bytes.size();
    Grow(bytes, limit);
    const ssize_t count = read(fd.get(), bytes.data() + before, bytes.size() - before);
    const int error = errno;
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && error == EINTR) continue;
    if (count < 0 && error == EISDIR) {
      return InvalidArgument(fmt::format("'{}' is a directory; name a file in it", path));
    }
    if (count < 0) return SystemError(fmt::format("reading '{}'", path), error);
    if (count == 0) return bytes;
    if (bytes.size() > limit.count()) {
      return OutOfRange(fmt::format("'{}' is larger than {}; allow more if you trust the file",
                                    path, ToString(limit)));
    }
  }
}

Result<std::string> Unpack(std::string bytes, Bytes limit) {
  if (bytes.starts_with(kGzipMagic)) return UnpackGzip(bytes, limit);
  if (bytes.starts_with(kXzMagic)) return UnpackXz(bytes, limit);
  if (bytes.size() > limit.count()) return TooLarge(limit);
  return bytes;
}

}  // namespace keel::trace
