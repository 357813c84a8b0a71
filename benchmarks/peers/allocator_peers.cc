// Keel's device allocator beside PyTorch's native one and the driver's own pool (cudaMallocAsync),
// in one process, by the same loops. peers.py builds and runs this where PyTorch and a GPU are.
//
// Prints a JSON list of {"scenario", "peer", "ns"}: nanoseconds for an allocation and its free, the
// median of several rounds; the peers take turns. Statistics of all are on, as they are by default.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "keel/hal/driver.h"
#include "keel/memory/device_allocator.h"

namespace {

constexpr int kRounds = 7;

template <class T>
T Need(keel::Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}
void Need(const keel::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
  }
}
void Need(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

// --- The peers --------------------------------------------------------------------------------

// The same for all: 0 and 1 for one thread, one more for each of 16 threads.
std::vector<cudaStream_t> streams;

// A block as the loops hold it.
struct Held {
  void* pointer = nullptr;
};

class Keel {
 public:
  static constexpr const char* kName = "keel";
  Keel() {
    device_ = Need(keel::hal::Registry::Global().OpenDefault());
    allocator_ = Need(keel::memory::DeviceAllocator::Create(device_));
  }
  using Stream = keel::hal::StreamHandle;
  Stream StreamAt(int i) {
    return Need(device_->BorrowStream(reinterpret_cast<std::uint64_t>(streams[i])));
  }
  Held Allocate(std::size_t size, Stream stream) {
    return {reinterpret_cast<void*>(Need(allocator_->Allocate(keel::Bytes(size), stream)).value())};
  }
  void Free(Held held, Stream /*stream*/) {
    Need(allocator_->Free(keel::DeviceAddress(reinterpret_cast<std::uint64_t>(held.pointer))));
  }
  static constexpr bool kRecordsUse = true;
  void RecordUse(Held held, Stream stream) {
    Need(allocator_->RecordUse(keel::DeviceAddress(reinterpret_cast<std::uint64_t>(held.pointer)),
                               stream));
  }
  void Empty() { Need(allocator_->EmptyCache()); }

 private:
  std::shared_ptr<keel::hal::Device> device_;
  std::unique_ptr<keel::memory::DeviceAllocator> allocator_;
};

class Torch {
 public:
  static constexpr const char* kName = "pytorch";
  using Stream = c10::cuda::CUDAStream;
  Stream StreamAt(int i) { return c10::cuda::getStreamFromExternal(streams[i], 0); }
  Held Allocate(std::size_t size, const Stream& stream) {
    return {c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(size, stream.stream())};
  }
  void Free(Held held, const Stream& /*stream*/) {
    c10::cuda::CUDACachingAllocator::raw_delete(held.pointer);
  }
  static constexpr bool kRecordsUse = true;
  void RecordUse(Held held, const Stream& stream) {
    // Its interface knows a block by the pointer and the deleter of what owns it.
    c10::DataPtr owner(held.pointer, held.pointer,
                       c10::cuda::CUDACachingAllocator::get()->raw_deleter(),
                       c10::Device(c10::DeviceType::CUDA, 0));
    c10::cuda::CUDACachingAllocator::recordStream(owner, stream);
    owner.release_context();
  }
  void Empty() { c10::cuda::CUDACachingAllocator::emptyCache(); }
};

class Driver {
 public:
  static constexpr const char* kName = "cudaMallocAsync";
  Driver() {
    cudaMemPool_t pool = nullptr;
    Need(cudaDeviceGetDefaultMemPool(&pool, 0));
    std::uint64_t all = ~std::uint64_t{0};
    Need(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  }
  using Stream = cudaStream_t;
  Stream StreamAt(int i) { return streams[i]; }
  Held Allocate(std::size_t size, Stream stream) {
    Held held;
    Need(cudaMallocAsync(&held.pointer, size, stream));
    return held;
  }
  void Free(Held held, Stream stream) { Need(cudaFreeAsync(held.pointer, stream)); }
  static constexpr bool kRecordsUse = false;
  void RecordUse(Held /*held*/, Stream /*stream*/) {}
  void Empty() {
    cudaMemPool_t pool = nullptr;
    Need(cudaDeviceSynchronize());
    Need(cudaDeviceGetDefaultMemPool(&pool, 0));
    Need(cudaMemPoolTrimTo(pool, 0));
  }
};

// --- The loops --------------------------------------------------------------------------------

template <class Work>
double Nanoseconds(std::size_t pairs, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const auto took = std::chrono::steady_clock::now() - begin;
  return std::chrono::duration<double, std::nano>(took).count() / static_cast<double>(pairs);
}

template <class Peer>
double Pair(Peer& peer, std::size_t size, std::size_t pairs) {
  auto stream = peer.StreamAt(0);
  for (int i = 0; i < 1000; ++i) peer.Free(peer.Allocate(size, stream), stream);
  return Nanoseconds(pairs, [&] {
    for (std::size_t i = 0; i < pairs; ++i) peer.Free(peer.Allocate(size, stream), stream);
  });
}

template <class Peer>
double Random(Peer& peer, std::size_t live, std::size_t pairs) {
  auto stream = peer.StreamAt(0);
  std::mt19937_64 random(3);
  std::vector<std::pair<std::size_t, std::size_t>> steps(pairs);
  for (auto& [slot, size] : steps) {
    slot = random() % live;
    size = 512 + random() % (2 << 20);
  }
  std::vector<Held> blocks(live);
  for (Held& block : blocks) block = peer.Allocate(512 + random() % (2 << 20), stream);
  const auto run = [&] {
    for (const auto& [slot, size] : steps) {
      peer.Free(blocks[slot], stream);
      blocks[slot] = peer.Allocate(size, stream);
    }
  };
  run();
  const double ns = Nanoseconds(pairs, run);
  for (const Held& block : blocks) peer.Free(block, stream);
  return ns;
}

// One thread allocates, another frees; a ring between them.
template <class Peer>
double OtherThread(Peer& peer, std::size_t size, std::size_t pairs) {
  constexpr std::size_t kRing = 256;
  auto stream = peer.StreamAt(0);
  std::vector<std::atomic<void*>> ring(kRing);
  for (auto& slot : ring) slot = nullptr;
  double ns = 0;
  std::thread consumer([&] {
    for (std::size_t i = 0; i < 2 * pairs; ++i) {
      std::atomic<void*>& slot = ring[i % kRing];
      void* pointer = nullptr;
      while ((pointer = slot.load(std::memory_order_acquire)) == nullptr) {
      }
      slot.store(nullptr, std::memory_order_release);
      peer.Free({pointer}, stream);
    }
  });
  const auto produce = [&](std::size_t from) {
    for (std::size_t i = from; i < from + pairs; ++i) {
      std::atomic<void*>& slot = ring[i % kRing];
      while (slot.load(std::memory_order_acquire) != nullptr) {
      }
      slot.store(peer.Allocate(size, stream).pointer, std::memory_order_release);
    }
  };
  produce(0);
  ns = Nanoseconds(pairs, [&] { produce(pairs); });
  consumer.join();
  return ns;
}

template <class Peer>
double Recorded(Peer& peer, std::size_t size, std::size_t pairs) {
  auto stream = peer.StreamAt(0);
  auto other = peer.StreamAt(1);
  const auto run = [&] {
    for (std::size_t i = 0; i < pairs; ++i) {
      const Held held = peer.Allocate(size, stream);
      peer.RecordUse(held, other);
      peer.Free(held, stream);
    }
  };
  run();
  return Nanoseconds(pairs, run);
}

// Requests that fit into none but few of `holes` separated free blocks.
template <class Peer>
double Holes(Peer& peer, std::size_t holes, std::size_t pairs) {
  auto stream = peer.StreamAt(0);
  std::mt19937_64 random(5);
  std::vector<Held> blocks(2 * holes);
  for (Held& block : blocks) block = peer.Allocate(512 + random() % (64 << 10), stream);
  for (std::size_t i = 0; i < blocks.size(); i += 2) peer.Free(blocks[i], stream);
  std::vector<std::size_t> sizes(4096);
  for (std::size_t& size : sizes) size = 512 + random() % (64 << 10);
  const auto run = [&] {
    for (std::size_t i = 0; i < pairs; ++i) {
      peer.Free(peer.Allocate(sizes[i % sizes.size()], stream), stream);
    }
  };
  run();
  const double ns = Nanoseconds(pairs, run);
  for (std::size_t i = 1; i < blocks.size(); i += 2) peer.Free(blocks[i], stream);
  return ns;
}

// All threads together: nanoseconds for a pair of any of them. For a fixed time, so that neither
// the start nor the end of a thread counts, which takes longer than thousands of pairs.
template <class Peer>
double Threads(Peer& peer, int threads) {
  constexpr auto kTime = std::chrono::milliseconds(30);
  constexpr std::size_t kBatch = 64;  // pairs between two looks at whether it is over
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<bool> over{false};
  std::atomic<std::size_t> total{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      auto stream = peer.StreamAt(2 + t);
      const std::size_t sizes[] = {512, 64 << 10, 4096, 1 << 20};
      const auto work = [&](std::size_t pairs) {
        for (std::size_t i = 0; i < pairs; ++i) {
          peer.Free(peer.Allocate(sizes[i % 4], stream), stream);
        }
      };
      work(1000);
      ++ready;
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
      std::size_t done = 0;
      for (; !over.load(std::memory_order_relaxed); done += kBatch) work(kBatch);
      total += done;
    });
  }
  while (ready != threads) std::this_thread::yield();
  const auto began = std::chrono::steady_clock::now();
  go.store(true, std::memory_order_release);
  std::this_thread::sleep_for(kTime);
  over.store(true, std::memory_order_relaxed);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  for (std::thread& thread : all) thread.join();
  return took.count() / static_cast<double>(total.load());
}

struct Figure {
  std::string scenario;
  std::string peer;
  std::vector<double> rounds;
};
std::vector<Figure> figures;

void Add(const std::string& scenario, const char* peer, double ns) {
  for (Figure& figure : figures) {
    if (figure.scenario == scenario && figure.peer == peer) return figure.rounds.push_back(ns);
  }
  figures.push_back({scenario, peer, {ns}});
}

template <class Peer>
void Round(Peer& peer, std::size_t pairs) {
  const auto add = [&](const std::string& scenario, double ns) { Add(scenario, Peer::kName, ns); };
  add("pair 512 B", Pair(peer, 512, pairs));
  add("pair 64 KiB", Pair(peer, 64 << 10, pairs));
  add("pair 1 MiB", Pair(peer, 1 << 20, pairs));
  add("pair 16 MiB", Pair(peer, 16 << 20, pairs));
  add("random, 100 live", Random(peer, 100, pairs));
  add("random, 1,000 live", Random(peer, 1000, pairs));
  add("random, 10,000 live", Random(peer, 10'000, pairs));
  peer.Empty();
  add("freed by another thread, 64 KiB", OtherThread(peer, 64 << 10, pairs));
  if (Peer::kRecordsUse) {
    add("used on a second stream, 64 KiB", Recorded(peer, 64 << 10, pairs / 4));
    add("used on a second stream, 4 KiB", Recorded(peer, 4 << 10, pairs / 4));
  }
  peer.Empty();
  add("64 holes", Holes(peer, 64, pairs));
  peer.Empty();
  add("65,536 holes", Holes(peer, 65'536, pairs));
  peer.Empty();
  for (const int threads : {1, 2, 4, 8, 16}) {
    add(std::to_string(threads) + " threads", Threads(peer, threads));
  }
  peer.Empty();
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t pairs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000;
  Need(cudaSetDevice(0));
  Need(cudaFree(nullptr));
  c10::cuda::CUDACachingAllocator::init(1);
  for (int i = 0; i < 18; ++i) {
    streams.push_back(nullptr);
    Need(cudaStreamCreateWithFlags(&streams.back(), cudaStreamNonBlocking));
  }
  Keel keel;
  Torch torch;
  Driver driver;
  for (int round = 0; round < kRounds; ++round) {
    std::fprintf(stderr, "round %d of %d\n", round + 1, kRounds);
    Round(keel, pairs);
    Round(torch, pairs / 4);
    Round(driver, pairs / 4);
  }
  std::printf("[");
  const char* separator = "\n";
  for (Figure& figure : figures) {
    std::sort(figure.rounds.begin(), figure.rounds.end());
    std::printf("%s  {\"scenario\": \"%s\", \"peer\": \"%s\", \"ns\": %.1f}", separator,
                figure.scenario.c_str(), figure.peer.c_str(),
                figure.rounds[figure.rounds.size() / 2]);
    separator = ",\n";
  }
  std::printf("\n]\n");
  // Without the destructors of three libraries that share a device.
  std::fflush(stdout);
  std::_Exit(0);
}
