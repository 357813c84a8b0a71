#include "task/answers.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

namespace keel::task {
namespace {

std::uint64_t WordOf(std::uint64_t number) {
  constexpr std::uint64_t kFactor = 0x9e37'79b9'7f4a'7c15;
  constexpr std::uint64_t kUpper = ~std::uint64_t{0} << 32;
  return (number * kFactor & kUpper) | (number & ~kUpper);
}

Status Damaged(std::uint64_t word) {
  return Internal(fmt::format(
      "what is between the orchestrator and the worker is damaged: {:#x} is no count of answers",
      word));
}

}  // namespace

Status AnswerWriter::Answer(const Status& status) {
  // The word is not looked at: whoever waits for it has it in another core's cache, and would wait
  // for two ways instead of one. What somebody else wrote there harms nobody any more.
  const std::uint64_t number = next();
  if (!status.ok()) {
    EncodeReply({.number = number, .status = status}, message_);
    KEEL_TRY(replies_.Put(message_));
  }
  answered_ = number;
  std::atomic_ref(*word_).store(WordOf(number), std::memory_order_release);
  return OkStatus();
}

Status AnswerWriter::CheckWord() const {
  const std::uint64_t word = std::atomic_ref(*word_).load(std::memory_order_relaxed);
  return word == WordOf(answered_) ? OkStatus() : Damaged(word);
}

Status AnswerWriter::Check() {
  KEEL_TRY(CheckWord());
  return replies_.Check();
}

Result<std::size_t> AnswerReader::Look(std::size_t outstanding) {
  const std::uint64_t word = std::atomic_ref(*word_).load(std::memory_order_acquire);
  const auto count =
      static_cast<std::uint32_t>(word) - static_cast<std::uint32_t>(taken_);  // modulo 2^32
  if (count > outstanding || word != WordOf(taken_ + count)) return Damaged(word);
  looked_ = false;
  most_ = taken_ + outstanding;
  return count;
}

std::size_t AnswerReader::TakeDone(std::size_t outstanding) {
  const std::uint64_t word = std::atomic_ref(*word_).load(std::memory_order_acquire);
  const auto count = static_cast<std::uint32_t>(word) - static_cast<std::uint32_t>(taken_);
  if (count > outstanding || word != WordOf(taken_ + count)) return 0;
  // After the word: what failed has a message before its count.
  if (reply_.has_value() || !replies_.Empty()) return 0;
  taken_ += count;
  return count;
}

Status AnswerReader::Take(Status& status) {
  const std::uint64_t number = ++taken_;
  if (!looked_ && !reply_.has_value()) {
    KEEL_ASSIGN(const bool found, replies_.Read(message_));
    looked_ = true;
    if (found) {
      KEEL_ASSIGN(reply_, DecodeReply(message_));
      if (reply_->status.ok() || reply_->number > most_) {
        return Internal(
            fmt::format("its message of task number {} makes no sense", reply_->number));
      }
    } else {
      // No message means success: none may have got lost.
      KEEL_TRY(replies_.Check());
    }
  }
  if (!reply_.has_value() || reply_->number != number) {
    if (reply_.has_value() && reply_->number < number) {
      return Internal(fmt::format("it answered task number {} again", reply_->number));
    }
    status = OkStatus();
    return OkStatus();
  }
  status = std::move(reply_->status);
  reply_.reset();
  looked_ = false;  // there may be another one
  return OkStatus();
}

}  // namespace keel::task
