// Prepares the terminal of textual.js: its address, and letters so small that 80 columns fit.
"use strict";
(() => {
  const COLUMNS = 80, LETTER_WIDTH = 0.6, LARGEST = 16, SMALLEST = 6;
  const terminal = document.getElementById("terminal");
  const fitting = Math.floor(window.innerWidth / COLUMNS / LETTER_WIDTH);
  terminal.dataset.fontSize = Math.max(SMALLEST, Math.min(LARGEST, fitting));
  const address = new URL("ws", window.location.href);
  address.protocol = address.protocol.replace("http", "ws");
  terminal.dataset.sessionWebsocketUrl = address.href;
  // letters are measured once, so the font must be there
  const start = window.onload;
  window.onload = (event) => {
    const begin = () => start(event);
    document.fonts.load("16px 'Roboto Mono'").then(begin, begin);
  };
})();
