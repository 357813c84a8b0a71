// An MPI within a test: what is sent to a rank comes from that rank. One at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "task/mpi/port.h"

namespace keel::task::mpi {

class FakeMpi {
 public:
  FakeMpi() { now_ = this; }
  ~FakeMpi() { now_ = nullptr; }
  FakeMpi(const FakeMpi&) = delete;
  FakeMpi& operator=(const FakeMpi&) = delete;

  static const KeelMpiTable& table() {
    static const KeelMpiTable table = {.version = kKeelMpiVersion,
                                       .size = sizeof(KeelMpiTable),
                                       .start = Start,
                                       .finish = [] {},
                                       .abort = [](int) {},
                                       .send = Send,
                                       .receive = Receive,
                                       .peek = Peek,
                                       .match = Match,
                                       .receive_matched = ReceiveMatched,
                                       .test = Test};
    return table;
  }

  using Message = std::vector<std::byte>;
  // By rank and tag, in the order of sending.
  std::map<std::pair<int, int>, std::vector<Message>> messages;
  // Sends end only while this is true.
  bool sends_end = true;

 private:
  struct Request {
    bool send = false;
    std::pair<int, int> from;
    std::byte* to = nullptr;
    std::size_t size = 0;
    std::optional<Message> message;
  };

  template <class T>
  static void Put(KeelMpiHandle* handle, T value) {
    std::memcpy(handle->bytes, &value, sizeof(value));
  }
  static std::size_t Get(const KeelMpiHandle* handle) {
    std::size_t value = 0;
    std::memcpy(&value, handle->bytes, sizeof(value));
    return value;
  }
  static int Start(int* rank, int* ranks, KeelMpiError*) {
    *rank = 0;
    *ranks = 2;
    return 0;
  }
  static int Send(const void* bytes, std::size_t size, int rank, int tag, KeelMpiHandle* request,
                  KeelMpiError*) {
    const auto* const first = static_cast<const std::byte*>(bytes);
    now_->messages[{rank, tag}].emplace_back(first, first + size);
    Put(request, now_->requests_.size());
    now_->requests_.push_back({.send = true, .from = {}, .message = {}});
    return 0;
  }
  static int Receive(void* bytes, std::size_t size, int rank, int tag, KeelMpiHandle* request,
                     KeelMpiError*) {
    Put(request, now_->requests_.size());
    now_->requests_.push_back(
        {.from = {rank, tag}, .to = static_cast<std::byte*>(bytes), .size = size, .message = {}});
    return 0;
  }
  static int Peek(int* found, KeelMpiError*) {
    *found = 0;
    for (const auto& [from, queue] : now_->messages) *found |= queue.empty() ? 0 : 1;
    return 0;
  }
  static std::optional<Message> Next(std::pair<int, int> from) {
    auto& queue = now_->messages[from];
    if (queue.empty()) return std::nullopt;
    Message message = std::move(queue.front());
    queue.erase(queue.begin());
    return message;
  }
  static int Match(int rank, int tag, int* found, std::size_t* size, KeelMpiHandle* message,
                   KeelMpiError*) {
    std::optional<Message> next = Next({rank, tag});
    *found = next.has_value() ? 1 : 0;
    if (!next) return 0;
    *size = next->size();
    Put(message, now_->matched_.size());
    now_->matched_.push_back(*std::move(next));
    return 0;
  }
  static int ReceiveMatched(void* bytes, std::size_t size, KeelMpiHandle* message,
                            KeelMpiHandle* request, KeelMpiError*) {
    Put(request, now_->requests_.size());
    now_->requests_.push_back({.from = {},
                               .to = static_cast<std::byte*>(bytes),
                               .size = size,
                               .message = now_->matched_.at(Get(message))});
    return 0;
  }
  static int Test(KeelMpiHandle* request, int* done, std::size_t* size, KeelMpiError* error) {
    Request& begun = now_->requests_.at(Get(request));
    *done = 0;
    if (begun.send) {
      *done = now_->sends_end ? 1 : 0;
      return 0;
    }
    if (!begun.message) begun.message = Next(begun.from);
    if (!begun.message) return 0;
    if (begun.message->size() > begun.size) {
      std::snprintf(error->text, sizeof(error->text), "message truncated");
      return 1;
    }
    std::ranges::copy(*begun.message, begun.to);
    *done = 1;
    *size = begun.message->size();
    return 0;
  }

  inline static FakeMpi* now_ = nullptr;
  std::vector<Request> requests_;
  std::vector<Message> matched_;
};

}  // namespace keel::task::mpi
