#include "trace/compressed_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#ifdef KEEL_HAVE_LZMA
#include <lzma.h>
#endif

namespace keel::trace {
namespace {

constexpr std::size_t kStep = 1 << 20;

Status TooLarge(const std::string& path, Bytes limit) {
  return OutOfRange(fmt::format("'{}' unpacks to more than {}", path, ToString(limit)));
}

Status Damaged(const std::string& path, std::string_view format, std::size_t offset) {
  return InvalidArgument(
      fmt::format("'{}' is damaged: the {} data is broken near byte {}", path, format, offset));
}

Result<std::string> UnpackGzip(const std::string& path, const std::string& packed, Bytes limit) {
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
      if (before >= limit.count()) return TooLarge(path, limit);
      out.resize(before + std::min<std::uint64_t>(kStep, limit.count() - before));
      stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
      stream.avail_out = static_cast<uInt>(out.size() - before);
      const int code = inflate(&stream, Z_NO_FLUSH);
      out.resize(out.size() - stream.avail_out);
      if (code == Z_STREAM_END) return out;
      const bool starved = out.size() == before && stream.avail_in == 0 && fed == packed.size();
      if (code != Z_OK || starved) return Damaged(path, "gzip", fed - stream.avail_in);
    }
  };
  Result<std::string> out = unpack();
  inflateEnd(&stream);
  return out;
}

#ifdef KEEL_HAVE_LZMA
Result<std::string> UnpackXz(const std::string& path, const std::string& packed, Bytes limit) {
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
      if (before >= limit.count()) return TooLarge(path, limit);
      out.resize(before + std::min<std::uint64_t>(kStep, limit.count() - before));
      stream.next_out = reinterpret_cast<std::uint8_t*>(out.data() + before);
      stream.avail_out = out.size() - before;
      const lzma_ret code = lzma_code(&stream, LZMA_FINISH);
      out.resize(out.size() - stream.avail_out);
      if (code == LZMA_STREAM_END) return out;
      if (code != LZMA_OK) return Damaged(path, "xz", packed.size() - stream.avail_in);
    }
  };
  Result<std::string> out = unpack();
  lzma_end(&stream);
  return out;
}
#else
Result<std::string> UnpackXz(const std::string& path, const std::string&, Bytes) {
  return Unimplemented(
      fmt::format("'{}' is xz, and Keel was built without liblzma; unpack it first", path));
}
#endif

}  // namespace

Result<std::string> ReadMaybeCompressed(const std::string& path, Bytes limit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return SystemError(fmt::format("opening '{}'", path), errno == 0 ? ENOENT : errno);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return SystemError(fmt::format("reading '{}'", path), EIO);
  using std::string_view_literals::operator""sv;
  if (bytes.starts_with("\x1f\x8b"sv)) return UnpackGzip(path, bytes, limit);
  if (bytes.starts_with("\xfd\x37zXZ\0"sv)) return UnpackXz(path, bytes, limit);
  if (bytes.size() > limit.count()) return TooLarge(path, limit);
  return bytes;
}

}  // namespace keel::trace
